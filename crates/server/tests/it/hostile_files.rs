//! Workspaces that mean harm: file tools and deletions stay bounded, see nothing outside, and others are served.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use petasos_core::ids::TenantId;
use petasos_testkit::{Reply, Setup, TestServer, within};
use petasos_tools::{SessionWorkspace, Workspaces};
use serde_json::{Value, json};

/// A session whose tools never ask, and the directory that they work in.
struct Workplace {
    session: String,
    path: PathBuf,
}

async fn workplace(server: &TestServer, root: &Path) -> Workplace {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": policy }] });
    let agent = server.agent_with(tools).await;
    let session = server.client.session(&agent).await;
    let path = Workspaces::new(root.to_owned()).path_of(&SessionWorkspace {
        tenant: TenantId::default_tenant(),
        agent_id: agent.parse().unwrap(),
        session_id: session.parse().unwrap(),
    });
    fs::create_dir_all(&path).unwrap();
    Workplace { session, path }
}

async fn start() -> (TestServer, PathBuf, Setup) {
    let setup = Setup::default();
    let root = setup.workspaces.path().to_owned();
    (TestServer::start_with(setup.clone()).await, root, setup)
}

/// Runs a turn with these calls, and returns their results.
async fn results(server: &TestServer, session: &str, calls: &[(&str, Value)]) -> Vec<String> {
    server.model.script([Reply::tool_calls(calls.iter().cloned()), Reply::text("Done.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"), "{frames:#?}");
    let results = frames.iter().filter(|frame| frame.event == "agent.tool_result");
    results.map(|frame| frame.data["payload"]["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

async fn others_are_served(server: &TestServer) {
    let session = server.session().await;
    server.model.script([Reply::text("Still here.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hello").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn ignore_files_that_are_devices_links_or_huge_are_not_read() {
    let (server, root, _setup) = start().await;
    let place = workplace(&server, &root).await;
    fs::write(root.join("secret"), "needle\n").unwrap();
    for (directory, target) in [("zero", PathBuf::from("/dev/zero")), ("oracle", root.join("secret"))] {
        fs::create_dir(place.path.join(directory)).unwrap();
        fs::write(place.path.join(directory).join("needle"), "").unwrap();
        symlink(target, place.path.join(directory).join(".gitignore")).unwrap();
    }
    for (directory, megabytes) in [("sparse", 250), ("small", 0)] {
        fs::create_dir(place.path.join(directory)).unwrap();
        fs::write(place.path.join(directory).join("needle"), "").unwrap();
        let file = fs::File::create(place.path.join(directory).join(".gitignore")).unwrap();
        file.set_len(megabytes << 20).unwrap();
    }
    fs::create_dir(place.path.join("many")).unwrap();
    fs::write(place.path.join("many/needle"), "").unwrap();
    let patterns: String = (0..150_000).map(|number| format!("*[a-f]{number}?.log\n")).collect();
    fs::write(place.path.join("many/.ignore"), patterns).unwrap();
    let search = json!({ "pattern": "needle", "target": "files" });
    let found = results(&server, &place.session, &[("search_files", search)]).await;
    let found: Value = serde_json::from_str(&found[0]).unwrap();
    let all = ["many/needle", "oracle/needle", "small/needle", "sparse/needle", "zero/needle"];
    assert_eq!(found["files"], json!(all), "what is outside says nothing about what is inside: {found}");
    for name in ["many/.ignore", "oracle/.gitignore", "sparse/.gitignore", "zero/.gitignore"] {
        assert!(found["note"].as_str().unwrap().contains(name), "{found}");
    }
    others_are_served(&server).await;
}

#[tokio::test]
async fn pipes_as_ignore_files_hold_up_neither_others_nor_the_end() {
    let (server, root, _setup) = start().await;
    let mut places = Vec::new();
    for _ in 0..9 {
        places.push(workplace(&server, &root).await);
    }
    for place in &places {
        let calls = [("terminal", json!({ "command": "mkfifo .gitignore .ignore; echo x > file" }))];
        results(&server, &place.session, &calls).await;
        let calls = vec![("search_files", json!({ "pattern": "x" })); 64];
        for text in results(&server, &place.session, &calls).await {
            let found: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(found["matches"][0]["path"], "file", "{found}");
        }
    }
    others_are_served(&server).await;
    let server = server.restart().await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_while_it_is_searched_shows_nothing_outside() {
    let (server, root, _setup) = start().await;
    let place = workplace(&server, &root).await;
    let outside = root.join("outside");
    for number in 0..20 {
        fs::create_dir_all(outside.join(format!("foreign{number}"))).unwrap();
        fs::write(outside.join(format!("foreign{number}/name")), "foreign").unwrap();
        fs::create_dir_all(place.path.join(format!("d{number}/inner"))).unwrap();
    }
    let done = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (done, path) = (Arc::clone(&done), place.path.clone());
        move || {
            while !done.load(Ordering::Relaxed) {
                for number in 0..20 {
                    let (name, aside) =
                        (path.join(format!("d{number}")), path.join(format!("aside{number}")));
                    fs::rename(&name, &aside).unwrap();
                    symlink(&outside, &name).unwrap();
                    fs::remove_file(&name).unwrap();
                    fs::rename(&aside, &name).unwrap();
                }
            }
        }
    });
    let calls: Vec<(&str, Value)> = (0..40)
        .flat_map(|_| {
            let names = json!({ "pattern": "*", "target": "files" });
            [("search_files", names), ("search_files", json!({ "pattern": "foreign" }))]
        })
        .collect();
    for _ in 0..5 {
        for text in results(&server, &place.session, &calls).await {
            assert!(!text.contains("foreign"), "{text}");
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

#[tokio::test]
async fn a_session_with_12000_nested_directories_is_deleted() {
    let (server, root, _setup) = start().await;
    let place = workplace(&server, &root).await;
    // No path is that long, so the tree grows at its top.
    let thousand = "d/".repeat(999) + "d";
    fs::write(place.path.join("tree"), "the bottom").unwrap();
    for _ in 0..12 {
        let next = place.path.join("next");
        fs::create_dir_all(next.join(&thousand)).unwrap();
        fs::rename(place.path.join("tree"), next.join(&thousand).join("d")).unwrap();
        fs::rename(next, place.path.join("tree")).unwrap();
    }
    let search = results(&server, &place.session, &[("search_files", json!({ "pattern": "x" }))]).await;
    assert!(search[0].contains("the path is too long"), "{search:?}");
    server.client.delete(&format!("/v1/sessions/{}", place.session)).await;
    within("the workspace to go", async {
        while place.path.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn removal_notes_that_make_no_sense_do_not_keep_the_server_from_starting() {
    let (server, root, _setup) = start().await;
    fs::create_dir_all(root.join(".removals/session-directory")).unwrap();
    fs::write(root.join(".removals/session-broken"), "default\nnot an agent\n").unwrap();
    symlink("/dev/zero", root.join(".removals/session-link")).unwrap();
    let server = server.restart().await;
    others_are_served(&server).await;
}

#[tokio::test]
async fn many_reads_of_an_endless_line_are_answered_in_part() {
    let (server, root, _setup) = start().await;
    let place = workplace(&server, &root).await;
    fs::write(place.path.join("line"), "x".repeat(49 << 20)).unwrap();
    let calls = vec![("read_file", json!({ "path": "line" })); 30];
    for text in results(&server, &place.session, &calls).await {
        let read: Value = serde_json::from_str(&text).unwrap();
        let content = read["content"].as_str().unwrap();
        assert!(content.len() < 3000 && content.contains("it has 51380224 bytes"), "{content}");
    }
}
