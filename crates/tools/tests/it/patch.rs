//! `patch`.

use serde_json::{Value, json};

use crate::world::World;

async fn with_file(content: &str) -> World {
    let world = World::new();
    world.ok("write_file", json!({ "path": "file", "content": content })).await;
    world
}

async fn content(world: &World) -> String {
    std::fs::read_to_string(world.workspace().join("file")).unwrap()
}

async fn replace(before: &str, old: &str, new: &str) -> Result<String, String> {
    let world = with_file(before).await;
    let input = json!({ "mode": "replace", "path": "file", "old_string": old, "new_string": new });
    let output = world.call("patch", world.invocation(input)).await;
    if output.is_error { Err(output.text) } else { Ok(content(&world).await) }
}

#[tokio::test]
async fn text_is_replaced_where_it_is() {
    assert_eq!(replace("a\nb\nc\n", "b", "x").await.unwrap(), "a\nx\nc\n");
    assert_eq!(replace("a\nb\nc\n", "b\nc\n", "").await.unwrap(), "a\n");
    assert_eq!(replace("fn a() {}\n", "fn a() {}", "fn a() {\n}").await.unwrap(), "fn a() {\n}\n");
}

#[tokio::test]
async fn white_space_and_quotes_are_forgiven() {
    // Spaces at the end of a line.
    assert_eq!(replace("one  \ntwo\nthree\n", "one\ntwo", "1\n2").await.unwrap(), "1\n2\nthree\n");
    // Another indentation, which the new text gets too.
    let before = "    if a:\n        b()\n";
    assert_eq!(
        replace(before, "if a:\n    b()", "if c:\n    d()").await.unwrap(),
        "    if c:\n        d()\n"
    );
    // Other white space in a line.
    assert_eq!(replace("x =  1;\ny\n", "x = 1;\ny", "z").await.unwrap(), "z\n");
    // Quotes and dashes that a model writes as it reads them.
    assert_eq!(replace("say “hi” – now\nend\n", "say \"hi\" - now\nend", "done").await.unwrap(), "done\n");
}

#[tokio::test]
async fn what_is_not_clear_is_refused_and_nothing_changes() {
    let twice = replace("a\na\n", "a", "b").await.unwrap_err();
    assert!(twice.contains("2 times") && twice.contains("replace_all"), "{twice}");
    assert!(replace("a\n", "b", "c").await.unwrap_err().contains("read the file"));
    assert!(replace("one\ntwo\n", "one\nthree", "c").await.unwrap_err().contains("line 1"));
    assert!(replace("a\n", "", "c").await.unwrap_err().contains("empty"));
    assert!(replace("a\n", "a", "a").await.unwrap_err().contains("the same"));
    let world = with_file("a\na\n").await;
    let input = json!({ "mode": "replace", "path": "file", "old_string": "a", "new_string": "b", "replace_all": true });
    let result = world.ok("patch", input).await;
    assert_eq!(content(&world).await, "b\nb\n");
    assert_eq!(result["files_modified"], json!(["file"]));
    assert!(result["diff"].as_str().unwrap().contains("-a\n-a\n+b\n+b\n"), "{result}");
}

async fn patch(world: &World, patch: &str) -> Result<Value, String> {
    let output = world.call("patch", world.invocation(json!({ "mode": "patch", "patch": patch }))).await;
    if output.is_error { Err(output.text) } else { Ok(serde_json::from_str(&output.text).unwrap()) }
}

#[tokio::test]
async fn a_patch_changes_several_files() {
    let world = with_file("def a():\n    return 1\n\ndef b():\n    return 1\n").await;
    world.ok("write_file", json!({ "path": "old", "content": "x\n" })).await;
    world.ok("write_file", json!({ "path": "moved", "content": "m\n" })).await;
    let text = "*** Begin Patch
*** Update File: file
@@ def b():
-    return 1
+    return 2
*** Add File: new/file.txt
+hello
+world
*** Delete File: old
*** Update File: moved
*** Move to: there/moved
-m
+n
*** End Patch";
    let result = patch(&world, text).await.unwrap();
    assert_eq!(content(&world).await, "def a():\n    return 1\n\ndef b():\n    return 2\n");
    let read = |path: &str| std::fs::read_to_string(world.workspace().join(path));
    assert_eq!(read("new/file.txt").unwrap(), "hello\nworld\n");
    assert_eq!(read("there/moved").unwrap(), "n\n");
    assert!(read("old").is_err() && read("moved").is_err());
    assert_eq!(result["files_modified"], json!(["file", "new/file.txt", "old", "moved", "there/moved"]));
}

#[tokio::test]
async fn hunks_apply_from_top_to_bottom() {
    let world = with_file("a\nb\na\nb\nend").await;
    let text = "*** Begin Patch\n*** Update File: file\n@@\n a\n-b\n+first\n@@\n a\n-b\n+second\n@@\n end\n+more\n*** End Patch";
    patch(&world, text).await.unwrap();
    assert_eq!(content(&world).await, "a\nfirst\na\nsecond\nend\nmore");
}

#[tokio::test]
async fn a_patch_is_all_or_nothing() {
    let world = with_file("a\n").await;
    for (text, words) in [
        ("*** Update File: file\n-a\n+b\n*** Update File: missing\n-a\n+b", "missing is not there"),
        ("*** Update File: file\n-a\n+b\n*** Add File: ../out\n+x", "../out"),
        ("*** Update File: file\n-z\n+b", "does not have this text"),
        ("*** Add File: file\n+b", "there already"),
        ("*** Update File: file\n@@ nowhere\n-a\n+b", "no line 'nowhere'"),
        ("-a\n+b", "before any"),
        ("", "names no file"),
        ("*** Rename File: x", "not understood"),
    ] {
        let error = patch(&world, text).await.unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
        assert_eq!(content(&world).await, "a\n", "{text}");
    }
}

#[tokio::test]
async fn what_would_grow_too_large_is_refused() {
    let world = with_file(&"e".repeat(1_000_000)).await;
    let new = "x".repeat(1_000);
    let input = json!({ "path": "file", "old_string": "e", "new_string": new, "replace_all": true });
    let problem = world.error("patch", input).await;
    assert!(problem.contains("larger than 10485760 bytes"), "{problem}");
    assert_eq!(content(&world).await.len(), 1_000_000);
}

#[tokio::test]
async fn a_change_in_a_million_places_is_made_in_one_go() {
    let lines = |word: &str| {
        (0..200_000).map(|number| format!("{word}{word}{word}{word} {number}\n")).collect::<String>()
    };
    let world = with_file(&lines("e")).await;
    let input = json!({ "path": "file", "old_string": "e", "new_string": "ff", "replace_all": true });
    let result = world.ok("patch", input).await;
    assert!(result["diff"].as_str().unwrap().ends_with("+ffffffff 199999\n"));
    assert!(content(&world).await == lines("ff"));
}

#[tokio::test]
async fn places_that_overlap_are_changed_once() {
    let world = with_file("  a\n  a\n  a\n").await;
    let input = json!({ "path": "file", "old_string": "a \na ", "new_string": "b", "replace_all": true });
    world.ok("patch", input).await;
    assert_eq!(content(&world).await, "  b\n  a\n");
}
