//! `search_files`.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::world::World;

async fn world() -> World {
    let world = World::new();
    for (path, content) in [
        ("src/main.rs", "fn main() {\n    greet();\n}\n"),
        ("src/greet.rs", "// greets\nfn greet() {}\n"),
        ("docs/greet.md", "How to greet.\n"),
        ("build/out.rs", "fn greet() {}\n"),
        (".gitignore", "build/\n"),
        (".env.example", "greet=1\n"),
        (".git/config", "greet\n"),
    ] {
        world.ok("write_file", json!({ "path": path, "content": content })).await;
    }
    world
}

fn paths(result: &Value) -> Vec<&str> {
    result["matches"].as_array().unwrap().iter().map(|found| found["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn content_is_found_with_its_place() {
    let world = world().await;
    let result = world.ok("search_files", json!({ "pattern": r"fn greet\(" })).await;
    let found = json!([{ "path": "src/greet.rs", "line": 2, "content": "fn greet() {}" }]);
    assert_eq!((result["total_count"].as_u64(), &result["matches"]), (Some(1), &found));
    let result = world.ok("search_files", json!({ "pattern": "greet" })).await;
    let all = [".env.example", "docs/greet.md", "src/greet.rs", "src/greet.rs", "src/main.rs"];
    assert_eq!(paths(&result), all);
    let result = world.ok("search_files", json!({ "pattern": "greet", "path": "docs" })).await;
    assert_eq!(paths(&result), ["docs/greet.md"]);
    let input = json!({ "pattern": "greet", "file_glob": "*.rs", "limit": 1, "offset": 1 });
    let result = world.ok("search_files", input).await;
    assert_eq!((paths(&result), result["next_offset"].as_u64()), (vec!["src/greet.rs"], Some(2)));
    let result = world.ok("search_files", json!({ "pattern": "greet\\(\\);", "context": 1 })).await;
    assert_eq!(result["matches"][0]["before"], json!(["1|fn main() {"]));
    assert_eq!(result["matches"][0]["after"], json!(["3|}"]));
}

#[tokio::test]
async fn files_are_listed_and_counted() {
    let world = world().await;
    let result = world.ok("search_files", json!({ "pattern": "greet", "output_mode": "files_only" })).await;
    assert_eq!(result["files"], json!([".env.example", "docs/greet.md", "src/greet.rs", "src/main.rs"]));
    let result = world.ok("search_files", json!({ "pattern": "fn", "output_mode": "count" })).await;
    assert_eq!(result["counts"][0], json!({ "path": "src/greet.rs", "count": 1 }));
    let names = async |pattern: &str| {
        world.ok("search_files", json!({ "pattern": pattern, "target": "files" })).await["files"].clone()
    };
    assert_eq!(names("*.rs").await, json!(["src/greet.rs", "src/main.rs"]));
    assert_eq!(names("greet").await, json!(["docs/greet.md", "src/greet.rs"]));
    assert_eq!(names("src/*.rs").await, json!(["src/greet.rs", "src/main.rs"]));
    assert_eq!(names("**/main.*").await, json!(["src/main.rs"]));
}

#[tokio::test]
async fn a_search_stays_in_the_workspace() {
    let world = world().await;
    std::fs::write(world.home.path().join("secret.txt"), "greet the secret").unwrap();
    symlink(world.home.path(), world.workspace().join("out")).unwrap();
    symlink(world.home.path().join("secret.txt"), world.workspace().join("link.txt")).unwrap();
    let result = world.ok("search_files", json!({ "pattern": "secret" })).await;
    assert_eq!(result["total_count"], 0);
    for path in ["..", "out", "/etc", "/proc/self/root"] {
        world.error("search_files", json!({ "pattern": "secret", "path": path })).await;
    }
}

#[tokio::test]
async fn what_cannot_be_searched_says_why() {
    let world = world().await;
    assert!(world.error("search_files", json!({ "pattern": "(" })).await.contains("no regular expression"));
    assert!(
        world
            .error("search_files", json!({ "pattern": "(a{1000}){1000}" }))
            .await
            .contains("regular expression")
    );
    assert!(world.error("search_files", json!({ "pattern": "[", "target": "files" })).await.contains("glob"));
    assert!(
        world.error("search_files", json!({ "pattern": "x", "path": "gone" })).await.contains("not there")
    );
    world.ok("terminal", json!({ "command": "printf 'greet\\000greet\\n' > binary; mkfifo pipe" })).await;
    assert_eq!(world.ok("search_files", json!({ "pattern": "greet", "path": "." })).await["total_count"], 5);
}

#[tokio::test]
async fn a_line_without_end_is_left_out_and_named() {
    let world = world().await;
    std::fs::write(world.workspace().join("endless.json"), "greet".repeat(4 << 20)).unwrap();
    let result = world.ok("search_files", json!({ "pattern": r"fn greet\(" })).await;
    assert_eq!(paths(&result), ["src/greet.rs"]);
    assert!(result["note"].as_str().unwrap().ends_with("cannot be read: endless.json."), "{result}");
}
