//! `petasos sessions export` and `petasos sessions import`.

use std::fs;

use crate::installation::{Installation, mode};

#[test]
fn a_session_moves_to_another_installation() {
    let here = Installation::new();
    let said = here.json(&["run", "--model", "demo/echo", "Remember me"]);
    let id = said["sessionId"].as_str().unwrap().to_owned();
    let file = here.file("session.jsonl");
    assert!(here.run(&["sessions", "export", &id, file.to_str().unwrap()]).success);
    assert_eq!(mode(&file), 0o600);
    let refused = here.run(&["sessions", "export", &id, file.to_str().unwrap()]);
    refused.assert_refused(&["session.jsonl", "exists already"]);
    let printed = here.run(&["sessions", "export", &id]).stdout;
    assert_eq!(printed, fs::read_to_string(&file).unwrap());

    let there = Installation::new();
    let imported = there.json(&["sessions", "import", file.to_str().unwrap()]);
    assert_eq!((imported["id"].as_str(), &imported["interrupted"]), (Some(id.as_str()), &false.into()));
    assert_eq!(there.run(&["sessions", "export", &id]).stdout.lines().skip(1).collect::<Vec<_>>(), {
        printed.lines().skip(1).collect::<Vec<_>>()
    });
    assert!(there.run(&["sessions", "get", &id]).stdout.contains("user: Remember me"));

    let again = there.run_with_input(&["sessions", "import", "-"], &printed);
    again.assert_refused(&["--new-id", "already_exists", &id]);
    let copy = there.run_with_input(&["sessions", "import", "-", "--new-id"], &printed);
    assert!(copy.success && !copy.stdout.contains(&id), "{copy:?}");
    there.run_with_input(&["sessions", "import", "-"], "nonsense").assert_refused(&["line 1"]);
    there.run(&["sessions", "import", "/no/such/file"]).assert_refused(&["/no/such/file"]);
    here.run(&["sessions", "export", "session_nobody"]).assert_refused(&["not_found"]);
}
