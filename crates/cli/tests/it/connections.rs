//! How many connections a server has, and what it says when they are too many.

use std::io::Read;

use crate::installation::Installation;

/// Open files of the server. Three quarters of them may be connections.
const OPEN_FILES: u64 = 120;
const MAX_CONNECTIONS: usize = 90;

#[test]
fn connections_are_counted_and_their_bound_is_named() {
    let installation = Installation::new();
    let server = installation.serve_with_open_files(OPEN_FILES);
    let key = server.shown_key().unwrap().to_owned();
    // A connection that asks for nothing yet is one.
    let idle: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let metrics = server.text("/metrics", &key);
    for line in [
        "petasos_open_connections 11".to_owned(),
        format!("petasos_max_connections {MAX_CONNECTIONS}"),
        "petasos_connections_turned_away_total 0".to_owned(),
    ] {
        assert!(metrics.lines().any(|shown| shown == line), "{line} is missing in {metrics}");
    }
    let more: Vec<_> = (0..MAX_CONNECTIONS).map(|_| server.connect()).collect();
    server.wait_for_log("LimitNOFILE");
    let mut last = more.into_iter().next_back().unwrap();
    assert_eq!(last.read(&mut [0; 1]).unwrap_or(0), 0, "it is closed without an answer");
    drop(idle);
}
