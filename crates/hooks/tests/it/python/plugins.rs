//! What plugins can do.

use petasos_hooks::{HookEvent, Hooks};
use serde_json::json;

use super::{BLOCKS, World, hooked};

#[tokio::test]
async fn a_plugin_blocks_injects_edits_observes_and_transforms() {
    let code = r#"
import json, os
def block(tool_name, args, task_id, **kw):
    args["command"] = args["command"].replace("grep", "rg")
    if "rm -rf" in args["command"]:
        return {"action": "block", "message": "not in session " + task_id}
def recall(session_id, user_message, is_first_turn, model, platform, **kw):
    return {"context": json.dumps([session_id, user_message, is_first_turn, model, platform])}
def policy(**kw):
    return "Be careful."
def observe(tool_name, result, duration_ms, **kw):
    open(os.environ["WORLD"] + "/observed", "a").write("%s %s %s\n" % (tool_name, result, duration_ms))
    return {"action": "block", "message": "ignored"}
def redact(result, **kw):
    return result.replace("secret", "[gone]") if "secret" in result else None
def register(ctx):
    ctx.register_hook("pre_tool_call", block)
    ctx.register_hook("pre_llm_call", recall)
    ctx.register_hook("pre_llm_call", policy)
    ctx.register_hook("post_tool_call", observe)
    ctx.register_hook("transform_tool_result", redact)
    ctx.register_hook("transform_tool_result", lambda result, **kw: result + "!")
"#;
    let world = World::with(&[("all", code)]).await;
    assert_eq!(world.pre_tool_call("grep x").await, (None, json!({ "command": "rg x" })));
    assert_eq!(world.blocked("rm -rf /").await.as_deref(), Some("not in session session_1"));
    let context = world.context("hello").await.unwrap();
    assert_eq!(context, "[\"session_1\", \"hello\", true, \"openai/scripted\", \"api\"]\n\nBe careful.");
    world.post_tool_call("done").await;
    assert_eq!(world.written("observed"), "terminal {\"result\":\"done\"} 12\n");
    assert_eq!(world.transformed("a secret").await.as_deref(), Some("a [gone]!"), "transforms are chained");
    assert!(!world.bus.wants(HookEvent::PreApiRequest), "nobody listens to this");
}

#[tokio::test]
async fn all_run_in_the_order_of_their_names_and_the_first_valid_block_wins() {
    let says = |message: &str| {
        let body = format!(
            "open(os.environ['WORLD'] + '/ran', 'a').write('{message} ')\nreturn {{'action': 'block', 'message': {message:?}}}"
        );
        hooked("pre_tool_call", &body)
    };
    let silent = hooked("pre_tool_call", "return {'action': 'block'}");
    let (b, c) = (says("b"), says("c"));
    let world = World::with(&[("c", &c), ("a-without-message", &silent), ("b", &b)]).await;
    assert_eq!(world.blocked("ls").await.as_deref(), Some("b"));
    assert_eq!(world.written("ran"), "b c ");
}

#[tokio::test]
async fn async_callbacks_work_and_may_run_at_the_same_time() {
    let code = "import asyncio\nseen = []\nasync def hook(args, **kw):\n    seen.append(1)\n    while len(seen) < 2:\n        \
                await asyncio.sleep(0.01)\n    return {'action': 'block', 'message': 'both'}\ndef \
                register(ctx):\n    ctx.register_hook('pre_tool_call', hook)\n";
    let world = World::with(&[("together", code)]).await;
    let (first, second) = tokio::join!(world.blocked("a"), world.blocked("b"));
    assert_eq!((first.as_deref(), second.as_deref()), (Some("both"), Some("both")));
}

#[tokio::test]
async fn what_cannot_be_loaded_is_left_out_and_said() {
    let plugins = [
        ("missing", "import nothing_of_that_name"),
        (
            "half",
            "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **kw: {'action': 'block', \
                  'message': 'half'})\n    raise ValueError('no more')",
        ),
        (
            "nonsense",
            "def register(ctx):\n    ctx.register_hook('pre_tool_cal', print)\n    \
                      ctx.register_hook('pre_tool_call', 7)\n    ctx.register_anything(1)",
        ),
        ("sound", BLOCKS),
    ];
    let world = World::with(&plugins).await;
    assert_eq!(world.blocked("rm").await.as_deref(), Some("no rm"));
    assert_eq!(world.blocked("ls").await, None, "half a plugin is none");
    let unloaded = world.hosts.unloaded();
    assert_eq!(unloaded.len(), 2, "{unloaded:?}");
    assert_eq!(unloaded[0], ("half".to_owned(), "ValueError: no more".to_owned()));
    assert!(unloaded[1].1.contains("nothing_of_that_name"), "{unloaded:?}");
}

#[tokio::test]
async fn what_is_registered_later_counts_too() {
    let code = "def register(ctx):\n    def hook(**kw):\n        ctx.register_hook('pre_llm_call', lambda **kw: 'late')\n    \
                ctx.register_hook('pre_tool_call', hook)\n";
    let world = World::with(&[("late", code)]).await;
    assert_eq!(world.context("x").await, None);
    world.blocked("x").await;
    petasos_testkit::within("the new hook", async {
        while world.context("x").await.as_deref() != Some("late") {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn nobody_is_started_for_nothing() {
    let world = World::with(&[]).await;
    assert!(world.bus.is_empty());
    assert!(world.hosts.tools().is_empty());
}
