//! Which hooks may run, and how a person says so.

use serde_json::{Value, json};

use crate::hooks::script;
use crate::installation::{Finished, Installation};
use crate::terminal::Terminal;

/// An installation with one hook that leaves a mark at each turn, and more of a configuration.
fn marking(more: &str) -> (Installation, String) {
    let installation = Installation::new();
    let mark = installation.file("mark").display().to_string();
    let command = script(&installation, "mark.sh", &format!("cat > /dev/null; echo fired >> {mark}"));
    let hooks = format!("hooks:\n  pre_llm_call:\n    - command: {command}\n{more}");
    installation.write("config.yaml", hooks);
    (installation, command)
}

pub(crate) fn one_turn(installation: &Installation, flags: &[&str]) -> Finished {
    let finished = installation.run(&[flags, &["run", "--model", "demo/fast", "hello"]].concat());
    assert!(finished.success, "{}", finished.stderr);
    finished
}

fn marks(installation: &Installation) -> usize {
    std::fs::read_to_string(installation.file("mark")).unwrap_or_default().lines().count()
}

#[test]
fn a_command_runs_only_after_a_yes_and_until_it_is_taken_back() {
    let (installation, command) = marking("");
    let finished = one_turn(&installation, &[]);
    assert_eq!(marks(&installation), 0);
    for word in ["--accept-hooks", "PETASOS_ACCEPT_HOOKS", "hooks_auto_accept", &command] {
        assert!(finished.stderr.contains(word), "{}", finished.stderr);
    }
    assert!(!installation.file("shell-hooks-allowlist.json").exists());

    let finished = one_turn(&installation, &["--accept-hooks"]);
    assert_eq!(marks(&installation), 1, "{}", finished.stderr);
    let list: Value = serde_json::from_str(
        &std::fs::read_to_string(installation.file("shell-hooks-allowlist.json")).unwrap(),
    )
    .unwrap();
    let [consent] = &list["approvals"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!((&consent["event"], &consent["command"]), (&json!("pre_llm_call"), &json!(command)));
    for time in ["approved_at", "script_mtime_at_approval"] {
        assert!(consent[time].as_str().is_some_and(|time| time.ends_with('Z')), "{consent}");
    }

    // From now on nobody is asked, and editing the script changes nothing about that.
    one_turn(&installation, &[]);
    assert_eq!(marks(&installation), 2);
    let edited = format!("cat > /dev/null; echo edited >> {}", installation.file("mark").display());
    script(&installation, "mark.sh", &edited);
    one_turn(&installation, &[]);
    assert_eq!(marks(&installation), 3);

    assert_eq!(installation.json(&["hooks", "revoke", &command])["revoked"], 1);
    one_turn(&installation, &[]);
    assert_eq!(marks(&installation), 3);
    let nothing = installation.run(&["hooks", "revoke", &command]);
    nothing.assert_refused(&["nobody had agreed to", "petasos hooks list"]);
}

#[test]
fn there_are_three_ways_to_accept() {
    let flag_last = |installation: &Installation| {
        let finished = installation.run(&["run", "--model", "demo/fast", "hello", "--accept-hooks"]);
        assert!(finished.success, "{}", finished.stderr);
    };
    let (installation, _) = marking("");
    flag_last(&installation);
    assert_eq!(marks(&installation), 1);
    for variable in ["PETASOS_ACCEPT_HOOKS", "HERMES_ACCEPT_HOOKS"] {
        for (word, accepts) in [("1", true), ("true", true), ("YES", true), ("0", false), ("false", false)] {
            let (installation, _) = marking("");
            let installation = installation.with_env(variable, word);
            one_turn(&installation, &[]);
            assert_eq!(marks(&installation) == 1, accepts, "{variable}={word}");
        }
    }
    for (setting, accepts) in [("true", true), ("\"on\"", true), ("\"false\"", false), ("1", false)] {
        let (installation, _) = marking(&format!("hooks_auto_accept: {setting}\n"));
        one_turn(&installation, &[]);
        assert_eq!(marks(&installation) == 1, accepts, "{setting}");
    }
}

const ASKS: &str = "May it, from now on? [y/N] ";
const TURN: [&str; 4] = ["run", "--model", "demo/fast", "hello"];

#[test]
fn a_person_at_a_terminal_is_asked_once() {
    for yes in ["y", "YES", " y "] {
        let (installation, command) = marking("");
        let mut terminal = installation.at_terminal(&TURN);
        terminal.wait_for("A hook wants to run at pre_llm_call:");
        terminal.wait_for(&command);
        terminal.wait_for(ASKS);
        terminal.say(yes);
        terminal.wait_for("You said: hello");
        assert_eq!(terminal.finish(), Some(0));
        assert_eq!(marks(&installation), 1, "{yes:?}");

        let mut terminal = installation.at_terminal(&TURN);
        terminal.wait_for("You said: hello");
        assert!(!terminal.shown().contains(ASKS), "{}", terminal.shown());
        assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 2));
    }
}

#[test]
fn what_was_typed_before_is_no_yes() {
    let (installation, _) = marking("");
    let mut terminal = Terminal::start_after("y\n", installation.command(&TURN), None);
    terminal.wait_for(ASKS);
    terminal.say("n");
    terminal.wait_for("You said: hello");
    assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 0));
}

#[test]
fn anything_but_a_yes_is_a_no_and_is_asked_again() {
    const END_OF_INPUT: &str = "\u{4}";
    let (installation, _) = marking("");
    for no in ["n\n", "\n", "yess\n", "y n\n", END_OF_INPUT] {
        let mut terminal = installation.at_terminal(&TURN);
        terminal.wait_for(ASKS);
        terminal.press(no);
        terminal.wait_for("You said: hello");
        assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 0), "{no:?}");
        assert!(!installation.file("shell-hooks-allowlist.json").exists(), "{no:?}");
    }
}

#[test]
fn an_allowlist_that_cannot_be_read_is_not_written_over() {
    let (installation, command) = marking("");
    let damaged = "{\"approvals\": [{\"event\": \"pre_llm_call\", \"comm";
    let list = installation.write("shell-hooks-allowlist.json", damaged);
    let refused = installation.run(&["hooks", "revoke", &command]);
    refused.assert_refused(&[list.to_str().unwrap()]);
    // A yes is good for this run only, and said to be.
    let run = installation.run(&[&["--accept-hooks"], &TURN[..]].concat());
    assert!(run.success && run.stderr.contains("the consent to a hook cannot be kept"), "{run:?}");
    assert_eq!(marks(&installation), 1);
    assert_eq!(std::fs::read_to_string(list).unwrap(), damaged);
}

#[test]
fn each_pair_of_event_and_command_is_asked_about() {
    let (installation, command) = marking("");
    let again = format!("  pre_api_request:\n    - command: {command}\n      async: false\n");
    let config = std::fs::read_to_string(installation.file("config.yaml")).unwrap();
    installation.write("config.yaml", config + &again);
    let mut terminal = installation.at_terminal(&TURN);
    terminal.wait_for("A hook wants to run at pre_llm_call:");
    terminal.wait_for(ASKS);
    terminal.say("n");
    terminal.wait_for("A hook wants to run at pre_api_request:");
    terminal.wait_for(ASKS);
    terminal.say("y");
    terminal.wait_for("You said: hello");
    assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 1));
    let listed = installation.json(&["hooks", "list"]);
    let allowed: Vec<&Value> =
        listed["hooks"].as_array().unwrap().iter().map(|hook| &hook["allowed"]).collect();
    assert_eq!(allowed, [false, true]);
}

#[test]
fn whoever_accepts_in_advance_is_not_asked() {
    let accepting = |flags: &[&str], config: &str, variable: Option<&str>| {
        let (mut installation, _) = marking(config);
        if let Some(word) = variable {
            installation = installation.with_env("PETASOS_ACCEPT_HOOKS", word);
        }
        let mut terminal = installation.at_terminal(&[flags, &TURN].concat());
        terminal.wait_for("You said: hello");
        assert!(!terminal.shown().contains(ASKS), "{}", terminal.shown());
        assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 1));
    };
    accepting(&["--accept-hooks"], "", None);
    accepting(&[], "hooks_auto_accept: true\n", None);
    accepting(&[], "", Some("1"));
}

#[test]
fn a_server_and_a_chat_ask_before_they_start() {
    let (installation, _) = marking("");
    let mut serve = installation.at_terminal(&["serve", "--listen", "127.0.0.1:0"]);
    serve.wait_for(ASKS);
    serve.say("n");
    serve.wait_for("http://127.0.0.1:");
    drop(serve);
    let mut chat = installation.at_terminal(&["chat", "--model", "demo/fast"]);
    chat.wait_for(ASKS);
    chat.say("y");
    chat.wait_for("/help");
    chat.press("hello\r");
    chat.wait_for("You said: hello");
    chat.press("/exit\r");
    assert_eq!((chat.finish(), marks(&installation)), (Some(0), 1));
}

#[test]
fn where_nobody_sees_the_question_nobody_is_asked() {
    let (installation, _) = marking("");
    let unseen = std::fs::File::create(installation.file("stderr")).unwrap();
    let mut terminal = installation.at_terminal_without_stderr(&TURN, unseen);
    terminal.wait_for("You said: hello");
    assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 0));
    let said = std::fs::read_to_string(installation.file("stderr")).unwrap();
    assert!(said.contains("nobody has agreed to it yet"), "{said}");
    // A command without turns asks nobody, wherever it runs.
    let mut terminal = installation.at_terminal(&["sessions", "list"]);
    terminal.wait_for("session_");
    assert!(!terminal.shown().contains(ASKS), "{}", terminal.shown());
    assert_eq!(terminal.finish(), Some(0));
}

#[test]
fn in_the_background_nobody_is_asked() {
    let (installation, _) = marking("");
    let run = installation.command(&TURN);
    let program = run.get_program().to_str().unwrap();
    // A shell with job control, whose terminal this is.
    let line = format!("set -m; {program} {} & wait", TURN.join(" "));
    let mut terminal = installation.program_at_terminal("setsid", &["--ctty", "--wait", "sh", "-c", &line]);
    terminal.wait_for("nobody has agreed to it yet");
    terminal.wait_for("You said: hello");
    assert_eq!((terminal.finish(), marks(&installation)), (Some(0), 0));
}

#[test]
fn a_command_cannot_dress_up_its_question() {
    let installation = Installation::new();
    installation
        .write("config.yaml", "hooks:\n  pre_llm_call:\n    - command: \"true \\e[2Jharmless\\rreally\"\n");
    let mut terminal = installation.at_terminal(&TURN);
    terminal.wait_for(ASKS);
    let shown = terminal.shown();
    assert!(!shown.contains('\u{1b}') && !shown.contains("harmless\rreally"), "{shown:?}");
    terminal.say("n");
    terminal.wait_for("You said: hello");
    assert_eq!(terminal.finish(), Some(0));
}
