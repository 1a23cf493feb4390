//! `search_files`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

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

/// The names that a search finds, and what it notes.
async fn names(world: &World) -> (Vec<String>, String) {
    let result = world.ok("search_files", json!({ "pattern": "*", "target": "files", "limit": 500 })).await;
    let names = result["files"].as_array().unwrap().iter();
    let note = result["note"].as_str().unwrap_or_default().to_owned();
    (names.map(|name| name.as_str().unwrap().to_owned()).collect(), note)
}

fn write(workspace: &Path, path: &str, content: &str) {
    let path = workspace.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[tokio::test]
async fn ignore_files_count_as_git_counts_them() {
    let world = World::new();
    let workspace = world.workspace();
    for (path, content) in [
        (".gitignore", "\u{feff}*.log\n/only_here\ndeep/*.tmp\n!kept.log\n# *.rs\n[\n"),
        (".ignore", "hidden.rs\n!shown.log\n"),
        (".git/info/exclude", "excluded\n*.rs.bak\n"),
        ("a.log", ""),
        ("kept.log", ""),
        ("shown.log", ""),
        ("hidden.rs", ""),
        ("main.rs", ""),
        ("only_here", ""),
        ("excluded", ""),
        ("deep/only_here", ""),
        ("deep/a.tmp", ""),
        ("deep/er/a.tmp", ""),
        ("deep/er/.gitignore", "!again.log\nlocal\n"),
        ("deep/er/again.log", ""),
        ("deep/er/local", ""),
        ("local", ""),
        ("repository/.git/config", ""),
        ("repository/a.log", ""),
        ("repository/hidden.rs", ""),
    ] {
        write(&workspace, path, content);
    }
    let (names, note) = names(&world).await;
    let found = [
        ".gitignore",
        ".ignore",
        "deep/er/.gitignore",
        "deep/er/a.tmp",
        "deep/er/again.log",
        "deep/only_here",
        "kept.log",
        "local",
        "main.rs",
        "repository/a.log",
        "shown.log",
    ];
    assert_eq!((names.as_slice(), note.as_str()), (found.map(str::to_owned).as_slice(), ""));
}

#[tokio::test]
async fn ignore_files_that_are_no_plain_files_or_too_large_are_not_applied_and_named() {
    let world = World::new();
    let workspace = world.workspace();
    write(&world.home.path().join("elsewhere"), "rules", "secret\n");
    for directory in ["zero", "pipe", "sparse", "many", "outside", "socket"] {
        write(&workspace, &format!("{directory}/secret"), "");
    }
    symlink("/dev/zero", workspace.join("zero/.gitignore")).unwrap();
    symlink(world.home.path().join("elsewhere/rules"), workspace.join("outside/.gitignore")).unwrap();
    let sparse = std::fs::File::create(workspace.join("sparse/.ignore")).unwrap();
    sparse.set_len(250 << 20).unwrap();
    let many: String = (0..150_000).map(|number| format!("*[0-9]{number}.x\n")).collect();
    write(&workspace, "many/.ignore", &many[..(1 << 20) - 100]);
    let _socket = std::os::unix::net::UnixListener::bind(workspace.join("socket/.ignore")).unwrap();
    world.ok("terminal", json!({ "command": "mkfifo pipe/.gitignore pipe/.ignore" })).await;
    let (names, note) = names(&world).await;
    for directory in ["zero", "pipe", "sparse", "many", "outside", "socket"] {
        assert!(names.contains(&format!("{directory}/secret")), "{directory}: {names:?}");
    }
    for named in ["outside/.gitignore (it is no regular file)", "many/.ignore (", "pipe/.ignore (it is no"] {
        assert!(note.contains(named), "{note}");
    }
    assert!(note.starts_with("Ignore files that were not applied: ") && note.contains("2 more"), "{note}");
}

#[tokio::test]
async fn ignore_files_one_in_another_and_patterns_of_many_wildcards_are_bounded() {
    let world = World::new();
    let workspace = world.workspace();
    let chain = "d/".repeat(20);
    for depth in 0..=20 {
        write(&workspace, &format!("{}.gitignore", "d/".repeat(depth)), &format!("left-out-{depth}\n"));
    }
    let wild = "**/*[bdfhjl]??????????????????[a-c]*q\n*.py[cod]\n";
    write(&workspace, ".ignore", wild);
    for name in ["left-out-3", "left-out-20", "b111111111111111111aq", "x.pyc"] {
        write(&workspace, &format!("{chain}{name}"), "x");
    }
    let (found, said) = names(&world).await;
    let is_found = |name: &str| found.contains(&format!("{chain}{name}"));
    assert!(!is_found("left-out-3") && !is_found("x.pyc"), "{found:?}");
    assert!(is_found("left-out-20") && is_found("b111111111111111111aq"), "{found:?}");
    for named in ["too many ignore files above it", ".ignore (1 of its patterns"] {
        assert!(said.contains(named), "{said}");
    }
}

#[tokio::test]
async fn directories_that_cannot_be_read_or_are_too_deep_are_named() {
    let world = World::new();
    let workspace = world.workspace();
    write(&workspace, "a/file", "");
    write(&workspace, "locked/file", "");
    std::fs::set_permissions(workspace.join("locked"), PermissionsExt::from_mode(0o000)).unwrap();
    let nest = "import os\nfor level in range(3000): os.mkdir('d' * 100); os.chdir('d' * 100)";
    world.ok("terminal", json!({ "command": format!("python3 -c \"{nest}\"") })).await;
    let (names, note) = names(&world).await;
    assert!(names.contains(&"a/file".to_owned()), "{names:?}");
    assert!(note.contains("Not searched, because the path is too long: dddd"), "{note}");
    // Root reads everything.
    let unlocked = std::fs::read_dir(workspace.join("locked")).is_ok();
    assert!(unlocked || note.contains("Directories that cannot be read: locked."), "{note}");
    std::fs::set_permissions(workspace.join("locked"), PermissionsExt::from_mode(0o700)).unwrap();
    petasos_tools::remove_tree(&workspace, None).unwrap();
}
