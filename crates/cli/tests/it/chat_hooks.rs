//! Hooks are told when a person leaves a session, or a turn.

use serde_json::Value;

use crate::hooks::script;
use crate::installation::Installation;

/// An installation whose hooks write down what they are told of the ends of sessions and turns.
fn listening() -> Installation {
    let installation = Installation::new();
    let mut config = "hooks_auto_accept: true\nhooks:\n".to_owned();
    for event in ["on_session_end", "on_session_finalize"] {
        let told = installation.file(event).display().to_string();
        let command =
            script(&installation, &format!("{event}.sh"), &format!("cat >> {told}; echo >> {told}"));
        config.push_str(&format!("  {event}:\n    - command: {command}\n"));
    }
    installation.write("config.yaml", config);
    installation
}

fn told(installation: &Installation, event: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(installation.file(event)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn hooks_hear_when_a_chat_leaves_a_session() {
    let installation = listening();
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.say("/new");
    chat.wait_for("A new session begins");
    chat.say("first");
    chat.wait_for("You said: first");
    chat.say("/new");
    chat.wait_for("A new session begins");
    chat.say("second");
    chat.wait_for("You said: second");
    chat.say("/exit");
    let ended = chat.finish();
    assert!(ended.success, "{ended:?}");
    let told = told(&installation, "on_session_finalize");
    let [first, second] = &told[..] else { panic!("one for each session: {told:?}") };
    assert_ne!(first["session_id"], second["session_id"]);
    assert!(ended.stderr.contains(second["session_id"].as_str().unwrap()), "{ended:?}");
    assert_eq!(first["extra"]["platform"], "cli", "{first}");

    // A run of one turn ends no session.
    assert!(installation.run(&["run", "--model", "demo/fast", "hello"]).success);
    assert_eq!(self::told(&installation, "on_session_finalize").len(), 2);
}

#[test]
fn a_turn_that_ends_with_the_person_was_interrupted() {
    let installation = listening();
    let mut chat = installation.at_terminal(&["chat"]);
    chat.wait_for("/help");
    chat.press("count to 1000\r");
    chat.wait_for("1 2 ");
    chat.signal("INT");
    chat.wait_for("Interrupted.");
    chat.wait_for("> ");
    chat.press("\u{4}");
    assert_eq!(chat.finish(), Some(0));
    let ends = told(&installation, "on_session_end");
    let [end] = &ends[..] else { panic!("one turn: {ends:?}") };
    assert_eq!((&end["extra"]["completed"], &end["extra"]["interrupted"]), (&false.into(), &true.into()));
    assert_eq!(told(&installation, "on_session_finalize").len(), 1);
}
