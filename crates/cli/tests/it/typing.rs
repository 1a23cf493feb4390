//! A person at a terminal: what is typed when, and what the terminal is left as.

use std::net::TcpListener;

use crate::installation::Installation;

const CHAT: [&str; 3] = ["chat", "--model", "demo/fast"];
const MAY: &str = "a always, n no: ";

#[test]
fn what_is_typed_as_a_turn_ends_is_said_next() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&["chat", "--model", "demo/fast"]);
    chat.wait_for("/help");
    for number in 0..100 {
        // Each is typed when the answer to the one before has just been shown, and the prompt may not be there yet.
        chat.press(&format!("message {number}\r"));
        chat.wait_for(&format!("You said: message {number}"));
    }
    chat.press("first\rsecond\r/exit\r");
    chat.wait_for("You said: first");
    chat.wait_for("You said: second");
    assert_eq!(chat.finish(), Some(0));
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&CHAT);
    chat.wait_for("/help");
    chat.press("run echo done\ry\r");
    chat.wait_for(MAY);
    chat.press("n\r");
    chat.wait_for("✗ terminal");
    chat.press("/exit\r");
    assert_eq!(chat.finish(), Some(0));
}

#[test]
fn what_is_hidden_stays_so() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&CHAT);
    chat.wait_for("/help");
    chat.press("call request_secret {\"name\": \"TOKEN\", \"prompt\": \"The key.\"}\r");
    chat.wait_for("value: ");
    assert_eq!(chat.settings(), (false, false));
    chat.press("s3cret-value\r");
    chat.wait_for("The user supplied it.");
    assert!(!chat.shown().contains("s3cret"), "{}", chat.shown());
    chat.press("/exit\r");
    assert_eq!((chat.wait(), chat.settings()), (Some(0), (true, true)));
}

#[test]
fn ctrl_c_ends_the_wait_for_a_server_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    for command in [&["chat"][..], &["run", "hello"]] {
        let installation = Installation::new();
        let arguments = [command, &["--model", "demo/fast", "--server", &url, "--key", "x"]].concat();
        let mut waiting = installation.at_terminal(&arguments);
        let _connection = silent.accept().unwrap();
        waiting.signal("INT");
        waiting.wait_for("interrupted before the server answered");
        assert_eq!(waiting.finish(), Some(130), "{command:?}");
    }
}

#[test]
fn a_simple_terminal_is_enough() {
    let installation = Installation::new();
    let chat = installation.command(&CHAT);
    let program = chat.get_program().to_str().unwrap();
    let mut chat = installation.program_at_terminal("env", &[&["TERM=dumb", program][..], &CHAT].concat());
    chat.wait_for("/help");
    chat.wait_for("> ");
    chat.press("hello\n");
    chat.wait_for("You said: hello");
    chat.wait_for("> ");
    chat.signal("INT");
    chat.wait_for("Go on with: ");
    assert!(!chat.shown().contains('\u{1b}'), "{:?}", chat.shown());
    assert_eq!(chat.finish(), Some(0));
}

#[test]
fn a_line_that_the_terminal_cuts_is_said_to_be_cut() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&["chat"]);
    chat.wait_for("/help");
    chat.press("count to 1000\r");
    chat.wait_for("1 2 ");
    chat.press(&format!("{}\n", "a".repeat(5_000)));
    chat.wait_for("The end of this is lost");
}

#[test]
fn ctrl_d_beside_a_turn_changes_nothing() {
    let installation = Installation::new();
    let mut chat = installation.at_terminal(&["chat"]);
    chat.wait_for("/help");
    chat.press("count to 1000\r");
    chat.wait_for("1 2 ");
    chat.press("\u{4}");
    chat.press("later\n");
    chat.wait_for("This waits until the turn has ended");
    chat.signal("INT");
    chat.wait_for("Interrupted.");
    chat.wait_for("You said: later");
    chat.press("/exit\r");
    assert_eq!(chat.finish(), Some(0));
}
