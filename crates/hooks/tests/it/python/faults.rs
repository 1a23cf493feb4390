//! Plugins that misbehave: each costs its own callback, and nobody else anything.

use std::time::{Duration, Instant};

use petasos_hooks::Hooks;
use petasos_hooks::python::{Pauses, Settings};
use petasos_testkit::within;
use serde_json::json;

use super::{BLOCKS, World, hooked, impatient, quick};

/// The process that a plugin runs in.
const PID: &str = "def register(ctx):\n    import os\n    ctx.register_hook('pre_llm_call', lambda **kw: str(os.getpid()))\n";

#[tokio::test]
async fn exceptions_and_prints_do_no_harm() {
    let raises = hooked("pre_tool_call", "print('to the log')\nraise RuntimeError('always')");
    let world = World::with(&[("a-raises", &raises), ("b-blocks", BLOCKS)]).await;
    assert_eq!(world.blocked("rm").await.as_deref(), Some("no rm"));
    assert_eq!(world.pre_tool_call("ls").await, (None, json!({ "command": "ls" })));
}

#[tokio::test]
async fn forks_monkey_patches_and_closed_streams_do_no_harm() {
    let body = "import json, sys, threading\njson.dumps = json.loads = threading.Thread = None\nos.fork()\nsys.stdout.close()\n\
                os.closerange(0, 1)\nos.closerange(3, 200)\nreturn {'action': 'block', 'message': 'once'}";
    let wild = hooked("pre_tool_call", body);
    let world = World::with(&[("wild", &wild)]).await;
    for _ in 0..3 {
        assert_eq!(world.blocked("x").await.as_deref(), Some("once"));
    }
}

#[tokio::test]
async fn a_host_that_dies_costs_one_callback_and_moves_its_plugin_away() {
    let dies = "import os\ndef hook(args, **kw):\n    if args['command'] == 'die':\n        os._exit(7)\n    return {'action': \
                'block', 'message': 'alive'}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let world = World::with(&[("a-dies", dies), ("b-blocks", BLOCKS), ("c-pid", PID)]).await;
    assert_eq!(world.blocked("die").await, None);
    assert_eq!(world.blocked("ls").await.as_deref(), Some("alive"), "it is there again");
    let shared_host = world.context("x").await;
    assert_eq!(world.blocked("die").await, None);
    assert_eq!(world.blocked("rm").await.as_deref(), Some("alive"));
    assert_eq!(world.context("x").await, shared_host, "the others' host did not die the second time");
    assert_eq!(world.bus.problems(), Vec::<String>::new());
}

#[tokio::test]
async fn an_endless_loop_is_given_up_and_the_next_call_works() {
    let loops = "def hook(args, **kw):\n    while args['command'] == 'loop':\n        pass\n    return {'action': 'block', \
                 'message': 'fine'}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let world = World::of(impatient(), &[("a-loops", loops), ("b-pid", PID)], &[]).await;
    let host = world.context("x").await;
    assert_eq!(world.blocked("loop").await, None);
    assert_eq!(world.blocked("x").await.as_deref(), Some("fine"));
    assert_eq!(world.context("x").await, host, "a loop can be stopped without ending its host");
}

#[tokio::test]
async fn code_that_cannot_be_stopped_gets_a_host_of_its_own() {
    let sleeps = "import time\ndef hook(args, **kw):\n    if args['command'] == 'sleep':\n        time.sleep(600)\n    return \
                  {'action': 'block', 'message': 'awake'}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let world = World::of(impatient(), &[("a-sleeps", sleeps), ("b-blocks", BLOCKS)], &[]).await;
    let started = Instant::now();
    let (slept, context) = tokio::join!(world.blocked("sleep"), world.context("x"));
    assert_eq!((slept, context), (None, None));
    assert!(started.elapsed() < Duration::from_secs(10), "it took {:?}", started.elapsed());
    assert_eq!(world.blocked("rm").await.as_deref(), Some("awake"));
}

#[tokio::test]
async fn async_code_that_does_not_await_delays_no_other_session_and_loses_no_block() {
    let holds = "import os, threading\ngate = threading.Event()\nasync def hook(args, **kw):\n    if args['command'] == 'hold':\n        \
                 open(os.environ['WORLD'] + '/held', 'w').write('x')\n        gate.wait()\n    if args['command'] == 'open':\n        \
                 gate.set()\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let blocks = BLOCKS.replace("def hook", "async def hook");
    let world = World::with(&[("a-holds", holds), ("b-blocks", &blocks)]).await;
    tokio::join!(world.blocked("hold"), async {
        within("the loop to be held", async {
            while world.written("held").is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(world.blocked("rm").await.as_deref(), Some("no rm"));
        assert_eq!(world.blocked("rm").await.as_deref(), Some("no rm"));
        world.blocked("open").await;
    });
}

#[tokio::test]
async fn whoever_holds_the_interpreter_is_found_out_and_the_others_are_heard() {
    let holds = "import ctypes\ndef hook(args, **kw):\n    if args['command'] == 'hold':\n        ctypes.PyDLL(None).sleep(600)\ndef \
                 register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let says = hooked("pre_llm_call", "return 'heard'");
    let world = World::of(quick(), &[("holds", holds), ("says", &says)], &[]).await;
    let started = Instant::now();
    let (held, context) = tokio::join!(world.blocked("hold"), async {
        // By now the other one holds the interpreter, most likely; it must be right either way.
        tokio::task::yield_now().await;
        world.context("x").await
    });
    assert_eq!((held, context.as_deref()), (None, Some("heard")));
    assert!(started.elapsed() < Duration::from_secs(15), "it took {:?}", started.elapsed());
    assert_eq!(world.blocked("x").await, None);
    assert_eq!(world.context("x").await.as_deref(), Some("heard"));
}

#[tokio::test]
async fn a_plugin_that_ends_its_host_at_import_does_not_take_others_with_it() {
    let plugins = [("a-exits", "import os\nos._exit(3)"), ("b-blocks", BLOCKS)];
    let world = World::of(quick(), &plugins, &[]).await;
    assert_eq!(world.blocked("rm").await.as_deref(), Some("no rm"));
    within("the host to be left alone", async {
        while world.bus.problems().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let problems = world.bus.problems();
    assert!(problems[0].contains("plugin a-exits died 10 times in a row"), "{problems:?}");
}

#[tokio::test]
async fn ten_deaths_in_a_row_are_followed_by_a_pause_and_then_another_try() {
    let dies = "import os\ndef hook(**kw):\n    if not os.path.exists(os.environ['WORLD'] + '/mended'):\n        os._exit(7)\n    \
                return {'action': 'block', 'message': 'alive'}\ndef register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let pauses =
        Pauses { first: Duration::from_millis(500), sound_life: Duration::from_secs(3), ..Pauses::default() };
    let world = World::of(Settings { pauses, ..quick() }, &[("dies", dies), ("sound", PID)], &[]).await;
    for _ in 0..10 {
        assert_eq!(world.blocked("x").await, None);
    }
    let problems = world.bus.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("plugin dies died 10 times in a row: it ended while dies ran"),
        "{problems:?}"
    );
    assert_eq!(world.blocked("x").await, None, "it rests, and nobody waits for it");
    assert!(world.context("x").await.is_some(), "the others work");
    std::fs::write(world.home.path().join("mended"), "").unwrap();
    within("the next try", async {
        while world.blocked("x").await.as_deref() != Some("alive") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    within("all to be well again", async {
        while !world.bus.problems().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn without_python_everything_else_works_and_the_problem_is_said() {
    let mut settings = Settings { pauses: Pauses { after: 1, ..Pauses::default() }, ..quick() };
    settings.python.program = "no-such-python".to_owned();
    let world = World::of(settings, &[("blocks", BLOCKS)], &[]).await;
    assert_eq!(world.blocked("rm").await, None);
    let problems = world.bus.problems();
    assert!(problems[0].contains("no-such-python"), "{problems:?}");
}
