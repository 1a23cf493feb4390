//! Chats that outlive what they began with: sessions that are resumed, servers that come and go.

use crate::installation::Installation;

const NUMBERS: &str = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";

/// The session of the one conversation that there is.
fn only_session(installation: &Installation) -> String {
    let sessions = installation.json(&["sessions", "list"]);
    sessions["data"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_resumed_session_shows_where_it_stood_and_asks_at_once() {
    let installation = Installation::new();
    let waits = installation.run(&["run", "--model", "demo/fast", "ask me Which? A | B"]);
    assert_eq!(waits.code, Some(3));
    let session = only_session(&installation);
    let mut chat = installation.talk(&["chat", "--session", &session]);
    chat.wait_for("> ask me Which? A | B\n");
    chat.wait_for("? Which?\n");
    chat.say("1");
    chat.wait_for("clarify answered: A\n");
    chat.say("Goodbye");
    chat.wait_for("You said: Goodbye");
    let ended = chat.finish();
    assert!(ended.success && ended.stderr.contains(&session), "{ended:?}");
}

#[test]
fn other_commands_find_the_server_of_a_chat() {
    let installation = Installation::new();
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.say("Hello");
    chat.wait_for("You said: Hello");
    let session = only_session(&installation);
    let beside = installation.run(&["run", "--session", &session, "From beside"]);
    assert!(beside.success, "{beside:?}");
    chat.say("And again");
    chat.wait_for("You said: And again");
    assert!(chat.finish().success);
    assert!(!installation.file("server.json").exists() && !installation.file("admin.key").exists());
}

#[test]
fn a_chat_outlives_the_chat_whose_server_it_used() {
    let installation = Installation::new();
    let mut first = installation.talk(&["chat", "--model", "demo/fast"]);
    first.wait_for("demo/fast). /help");
    let mut second = installation.talk(&["chat", "--model", "demo/echo"]);
    second.say("count to 20");
    second.wait_for("1 2 3 ");
    // In the middle of a turn it ends without a word.
    first.signal("KILL");
    second.wait_for("The connection is gone; trying again.\n");
    second.wait_for("20 \n");
    let mut third = installation.talk(&["chat", "--model", "demo/fast"]);
    third.say("Hello");
    third.wait_for("You said: Hello");
    // What is answered after the turn says that it is over.
    third.say("/help");
    third.wait_for("/steer TEXT");
    // Between turns it ends as it should.
    assert!(second.finish().success);
    third.say("Once more");
    third.wait_for("The server had ended; another is there now. Say it again.\n");
    third.say("Once more");
    third.wait_for("You said: Once more");
    assert!(third.finish().success);
    assert!(!installation.file("server.json").exists() && !installation.file("admin.key").exists());
}

#[test]
fn a_killed_server_costs_a_chat_nothing() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let mut chat = installation.talk(&["chat"]);
    chat.say("count to 20");
    chat.wait_for("1 2 3 4 5 ");
    server.signal("KILL");
    server.wait();
    chat.wait_for("The connection is gone; trying again.\n");
    // The new one has another port, and plays the turn again from its last event.
    let server = installation.serve();
    chat.wait_for("20 \n");
    chat.say("Hello");
    chat.wait_for("You said: Hello");
    let shown = chat.finish().stdout;
    let without_note = shown.replace("\nThe connection is gone; trying again.\n", "");
    assert!(without_note.contains(NUMBERS), "{shown}");
    assert_eq!(shown.matches(" 12 ").count(), 1, "{shown}");
    server.stop();
}

#[test]
fn a_turn_that_a_killed_server_left_goes_on_in_a_chat_of_its_own() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let mut first = installation.talk(&["chat"]);
    first.say("count to 20");
    first.wait_for("1 2 3 ");
    server.signal("KILL");
    server.wait();
    drop(first);
    let session = only_session(&installation);
    let mut chat = installation.talk(&["chat", "--session", &session]);
    chat.wait_for("> count to 20\n");
    chat.wait_for(NUMBERS);
    assert!(chat.finish().success);
}

#[test]
fn a_run_survives_a_restart_too() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let mut run = installation.at_terminal(&["run", "count to 20"]);
    run.wait_for("1 2 3 ");
    server.signal("KILL");
    server.wait();
    run.wait_for("The connection is gone; trying again.");
    let _server = installation.serve();
    run.wait_for("20 \r\n");
    let shown = run.shown().replace("The connection is gone; trying again.\r\n", "");
    assert_eq!((run.finish(), shown), (Some(0), format!("{NUMBERS} \r\n")));
}

#[test]
fn a_run_goes_on_without_the_chat_whose_server_it_used() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&["chat"]);
    chat.wait_for("/help");
    let mut run = installation.at_terminal(&["run", "count to 20"]);
    run.wait_for("1 2 3 ");
    chat.signal("KILL");
    run.wait_for("The connection is gone; trying again.");
    run.wait_for("20 \r\n");
    assert_eq!(run.finish(), Some(0));
}

#[test]
fn a_question_outlives_the_server() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.say("run echo hi");
    chat.wait_for("? Allow terminal");
    server.signal("KILL");
    server.wait();
    chat.say("y");
    chat.wait_for("The turn still waits.");
    let _server = installation.serve();
    chat.say("go on");
    chat.wait_for("another is there now. Say it again.");
    chat.say("go on");
    chat.wait_for("What you said was not taken.");
    chat.wait_for("? Allow terminal");
    chat.say("y");
    chat.wait_for("terminal answered: {\"output\":\"hi");
    assert!(chat.finish().success);
}

/// An installation with a turn that a killed server left behind, and its session.
fn with_turn_left_behind() -> (Installation, String) {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/echo");
    server.say(&key, &session, "count to 100000");
    server.signal("KILL");
    server.wait();
    (installation, session)
}

#[test]
fn a_run_leaves_the_turns_of_others_as_they_are() {
    let (installation, other) = with_turn_left_behind();
    let log = || installation.json(&["sessions", "events", &other]);
    let before = log();
    let run = installation.run(&["run", "--model", "demo/fast", "Hello"]);
    assert!(run.success && run.stderr.is_empty(), "{run:?}");
    assert_eq!(log(), before);
    assert_eq!(installation.json(&["sessions", "get", &other])["status"], "running");
}

#[test]
fn a_chat_that_waits_for_turns_at_its_end_says_so() {
    let (installation, _) = with_turn_left_behind();
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.say("/exit");
    chat.wait_for_note("Waiting for turns and hooks that still run. Ctrl-C leaves at once");
    chat.signal("INT");
    assert!(chat.finish().success);
}
