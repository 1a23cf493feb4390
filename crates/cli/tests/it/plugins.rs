//! `petasos plugins`, and plugins and gateway hooks of a server that runs.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::hooks::script;
use crate::installation::{Installation, PATIENCE};

const PLUGIN: &str = "
import os
def start(session_id, platform, **kw):
    print('a session started on', platform)
    open(os.environ['PETASOS_HOME'] + '/started', 'w').write(platform + ' ' + str(os.environ.get('PETASOS_API_KEY')))
def register(ctx):
    ctx.register_hook('on_session_start', start)
    ctx.register_hook('transform_llm_output', lambda response_text, **kw: response_text + ' [checked]')
";

fn with_plugin() -> Installation {
    let installation = Installation::new()
        .with_env("PATH", option_env!("PATH").unwrap_or("/usr/bin"))
        .with_env("PETASOS_API_KEY", "pk_secret_of_the_server");
    installation.write("plugins/notes/plugin.yaml", "name: notes\nversion: 0.2\ndescription: Takes notes.\n");
    installation.write("plugins/notes/__init__.py", PLUGIN);
    installation
}

fn status(installation: &Installation, key: &str) -> String {
    let list = installation.json(&["plugins", "list"]);
    let plugin = list["data"].as_array().unwrap().iter().find(|plugin| plugin["key"] == key).unwrap().clone();
    plugin["status"].as_str().unwrap().to_owned()
}

/// Waits for a file of the home that is not empty.
fn wait_for(installation: &Installation, name: &str) -> String {
    let start = Instant::now();
    loop {
        match fs::read_to_string(installation.file(name)) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(start.elapsed() < PATIENCE, "waited in vain for {name}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn plugins_are_listed_enabled_and_disabled() {
    let installation = with_plugin();
    installation.write("plugins/broken/plugin.yaml", "name: [");
    let config = "# mine\nlisten: 127.0.0.1:0 # any\n";
    let path = installation.write("config.yaml", config);
    assert_eq!(status(&installation, "notes"), "not enabled");
    assert_eq!(status(&installation, "broken"), "broken");

    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let enabled = format!("{config}plugins:\n  enabled:\n    - notes\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), enabled);
    assert_eq!(status(&installation, "notes"), "enabled");
    let text = installation.run(&["plugins", "list"]).stdout;
    assert!(text.contains("notes") && text.contains("0.2") && text.contains("Takes notes."), "{text}");

    assert_eq!(installation.json(&["plugins", "disable", "notes"])["status"], "disabled");
    assert_eq!(status(&installation, "notes"), "disabled");
    let disabled = fs::read_to_string(&path).unwrap();
    assert!(disabled.starts_with(config) && disabled.contains("disabled:\n    - notes\n"), "{disabled}");

    installation.run(&["plugins", "enable", "note"]).assert_refused(&["did you mean notes?"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), disabled, "what is refused changes nothing");
}

#[test]
fn a_plugin_takes_part_in_turns_and_does_not_see_the_key() {
    let installation = with_plugin();
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let finished = installation.run(&["run", "--model", "demo/echo", "hello"]);
    assert!(finished.success, "{finished:?}");
    assert!(finished.stdout.trim_end().ends_with("[checked]"), "{finished:?}");
    assert_eq!(wait_for(&installation, "started"), "cli None");
}

#[test]
fn gateway_hooks_are_told_when_the_server_starts() {
    let installation = with_plugin();
    installation.write("hooks/boot/HOOK.yaml", "name: boot\nevents:\n  - gateway:startup\n");
    let handler = "import json, os\nasync def handle(event_type, context):\n    path = os.environ['PETASOS_HOME'] + \
                   '/told'\n    open(path, 'w').write(json.dumps([event_type, context]))\n";
    installation.write("hooks/boot/handler.py", handler);
    let _server = installation.serve();
    let told: Value = serde_json::from_str(&wait_for(&installation, "told")).unwrap();
    assert_eq!(told[0], "gateway:startup");
    assert!(told[1]["platforms"].is_array(), "{told}");
}

#[test]
fn the_doctor_loads_plugins_and_says_what_is_wrong() {
    let installation = with_plugin();
    installation.write("plugins/bad/plugin.yaml", "name: bad\n");
    installation.write("plugins/bad/__init__.py", "import nothing_of_that_name\n");
    for name in ["notes", "bad"] {
        assert!(installation.run(&["plugins", "enable", name]).success);
    }
    let finished = installation.run(&["doctor"]);
    assert!(
        finished.stdout.contains("warn  plugin bad: cannot be loaded: ModuleNotFoundError"),
        "{finished:?}"
    );
    assert!(finished.stdout.contains("ok    python host: runs 1 plugins and gateway hooks"), "{finished:?}");
}

#[test]
fn the_doctor_tells_hooks_from_plugins_and_names_from_files() {
    let installation = with_plugin();
    installation.write("hooks/b/HOOK.yaml", "name: b-broken\nevents: [gateway:startup]\n");
    let handler = installation.write("hooks/b/handler.py", "import nothing_of_that_name\n");
    installation.write("plugins/folder/plugin.yaml", "name: other\n");
    installation.write("plugins/folder/__init__.py", "def register(ctx): pass\n");
    installation.write("config.yaml", "plugins: { enabled: [folder] }\n");
    let shown = installation.run(&["doctor"]).stdout;
    assert!(shown.contains("warn  gateway hook b-broken: cannot be loaded: ModuleNotFoundError"), "{shown}");
    assert!(
        shown.contains(&format!("→ mend {}, or move its directory out of", handler.display())),
        "{shown}"
    );
    assert!(shown.contains("warn  plugin folder: is left out: "), "{shown}");
    assert!(shown.contains("→ mend that, or take folder out of plugins.enabled in config.yaml"), "{shown}");
    assert!(!shown.contains("petasos plugins disable"), "{shown}");
}

#[test]
fn what_a_plugin_changes_is_all_that_a_pipe_gets() {
    let installation = with_plugin();
    let code = "def register(ctx):\n    ctx.register_hook('transform_llm_output', lambda **kw: 'Changed.')\n";
    installation.write("plugins/notes/__init__.py", code);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let piped = installation.run(&["run", "--model", "demo/fast", "hello"]);
    assert_eq!((piped.stdout.as_str(), piped.stderr.as_str()), ("Changed.\n", ""), "{piped:?}");
    // Whoever saw it being said is told that it is something else now.
    let mut terminal = installation.at_terminal(&["run", "--model", "demo/echo", "count to 3"]);
    terminal.wait_for("1 2 3");
    terminal
        .wait_for("The message was changed after it was said; the session has this instead:\r\nChanged.\r\n");
    assert_eq!(terminal.finish(), Some(0));
}

#[test]
fn the_doctor_asks_a_running_server_what_is_wrong() {
    let installation = with_plugin();
    let dies =
        "import os\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **kw: os._exit(1))\n";
    installation.write("plugins/notes/__init__.py", dies);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let server = installation.serve();
    for _ in 0..10 {
        let finished = installation.run(&["run", "--model", "demo/fast", "hello"]);
        assert!(finished.success, "{finished:?}");
    }
    let finished = installation.run(&["doctor"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.stdout.contains("fail  running server: the Python host of plugin notes died 10 times"),
        "{finished:?}"
    );
    let log = server.stop();
    let said = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(said("died 10 times in a row"), 1, "{log}");
    assert!(said("a Python host died") <= 3, "deaths are not mentioned one by one: {log}");
}

#[test]
fn what_plugins_print_is_in_the_log() {
    let installation = with_plugin();
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let server = installation.serve();
    assert!(installation.run(&["run", "--model", "demo/fast", "hello"]).success);
    server.wait_for_log("a session started on cli");
}

#[test]
fn a_plugin_brings_commands_of_the_command_line() {
    let installation = with_plugin();
    let code = "
def setup(parser):
    parser.add_argument('--times', type=int, default=1)
    parser.add_argument('word')
def say(args):
    print(' '.join([args.word] * args.times))
    return 7
def register(ctx):
    ctx.register_cli_command('say', help='Says it.', setup_fn=setup, handler_fn=say)
";
    installation.write("plugins/notes/__init__.py", code);
    installation.run(&["say", "hi"]).assert_refused(&["unknown command \"say\""]);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let said = installation.run(&["say", "--times", "2", "hi"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(7), "hi hi\n"), "{said:?}");
    let wrong = installation.run(&["say"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("usage: petasos say"), "{wrong:?}");
    installation.run(&["sai", "hi"]).assert_refused(&["did you mean say?"]);
    installation.run(&["sevre"]).assert_refused(&["did you mean serve?"]);
}

#[test]
fn what_a_plugin_registers_in_vain_is_said() {
    let installation = with_plugin();
    let code = "def register(ctx):\n    ctx.register_platform('irc', 'IRC', None)\n";
    installation.write("plugins/notes/__init__.py", code);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let doctor = installation.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("warn  plugin notes: calls register_platform, which is not supported"),
        "{doctor}"
    );
}

/// A hook that has an agent carry out a list when the server starts, with the modules that such hooks import.
const CHECKLIST: &str = "
import os, threading
HOME = os.environ['PETASOS_HOME']
def work(tasks):
    from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
    from run_agent import AIAgent
    agent = AIAgent(model=_resolve_gateway_model(), **_resolve_runtime_agent_kwargs(), platform='gateway',
                    quiet_mode=True, skip_context_files=True, skip_memory=True, max_iterations=20)
    said = agent.run_conversation('Carry this out: ' + tasks).get('final_response', '')
    open(HOME + '/report', 'w').write(agent.model + ' said: ' + said)
async def handle(event_type, context):
    threading.Thread(target=work, args=(open(HOME + '/BOOT.md').read(),), daemon=True).start()
";

#[test]
fn a_gateway_hook_has_an_agent_work_when_the_server_starts() {
    let installation = with_plugin();
    installation.write("config.yaml", "default_model: demo/fast\n");
    installation.write("BOOT.md", "look after the hats");
    installation.write("hooks/boot/HOOK.yaml", "name: boot\nevents:\n  - gateway:startup\n");
    installation.write("hooks/boot/handler.py", CHECKLIST);
    let _server = installation.serve();
    let report = wait_for(&installation, "report");
    assert!(
        report.starts_with("demo/fast said: ")
            && report.contains("You said: Carry this out: look after the hats"),
        "{report}"
    );
}

#[test]
fn a_plugin_brings_slash_commands_to_chats() {
    let installation = with_plugin();
    let code = "
def weather(raw):
    if not raw:
        raise ValueError('no city')
    return 'sunny in ' + raw
def register(ctx):
    ctx.register_command('Weather', weather, description='Says the weather.', args_hint='<city>')
";
    installation.write("plugins/notes/__init__.py", code);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.say("/help");
    chat.wait_for("/weather <city>");
    chat.wait_for("Says the weather.");
    chat.say("/weather Ur");
    chat.wait_for("sunny in Ur\n");
    chat.say("/weather");
    chat.wait_for("/weather failed: ValueError: no city");
    chat.say("/wether Ur");
    chat.wait_for("There is no command /wether");
    chat.say("hello");
    chat.wait_for("You said: hello");
    let ended = chat.finish();
    assert!(ended.success, "{ended:?}");
}

#[test]
fn a_block_of_a_plugin_wins_over_that_of_a_command() {
    let installation = with_plugin();
    let code = "
def register(ctx):
    ctx.register_hook('pre_tool_call', lambda **kw: {'action': 'block', 'message': 'the plugin says no'})
";
    installation.write("plugins/notes/__init__.py", code);
    let command = script(
        &installation,
        "no.sh",
        r#"echo ran > $0.ran; echo '{"decision": "block", "reason": "so does the command"}'"#,
    );
    let hooks = format!("hooks_auto_accept: true\nhooks:\n  pre_tool_call:\n    - command: {command}\n");
    installation.write("config.yaml", hooks);
    assert!(installation.run(&["plugins", "enable", "notes"]).success);
    let finished = installation.run(&["run", "--model", "demo/fast", "call terminal {\"command\": \"ls\"}"]);
    assert!(finished.stdout.contains("the plugin says no"), "{finished:?}");
    assert!(!finished.stdout.contains("so does the command"), "{finished:?}");
    assert!(installation.file("agent-hooks/no.sh.ran").exists(), "all of them are asked");
}
