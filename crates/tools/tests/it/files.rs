//! `read_file` and `write_file`, and the ways out of a workspace that there are not.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn a_file_is_written_and_read() {
    let world = World::new();
    let written =
        world.ok("write_file", json!({ "path": "a/b/notes.txt", "content": "one\ntwo\nthree" })).await;
    assert_eq!(written, json!({ "path": "a/b/notes.txt", "bytes_written": 13 }));
    let read = world.ok("read_file", json!({ "path": "./a/b/../b/notes.txt" })).await;
    assert_eq!(read["content"], "1|one\n2|two\n3|three\n");
    let absolute = world.workspace().join("a/b/notes.txt");
    let read = world.ok("read_file", json!({ "path": absolute, "offset": 2, "limit": 1 })).await;
    assert_eq!((read["content"].as_str(), read["next_offset"].as_u64()), (Some("2|two\n"), Some(3)));
    world.ok("write_file", json!({ "path": "~/a/b/notes.txt", "content": "" })).await;
    assert_eq!(world.ok("read_file", json!({ "path": "a/b/notes.txt" })).await["content"], "");
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let world = World::new();
    world
        .ok(
            "terminal",
            json!({ "command": "mkdir d; head -c 100 /dev/zero > zero; mkfifo pipe; echo x > short" }),
        )
        .await;
    for (path, words) in [
        ("missing", "missing is not there"),
        ("d", "is a directory"),
        ("zero", "binary file of 100 bytes"),
        ("pipe", "no regular file"),
    ] {
        let text = world.error("read_file", json!({ "path": path })).await;
        assert!(text.contains(words), "{text}");
    }
    assert!(world.error("read_file", json!({ "path": "short", "offset": 5 })).await.contains("only 1 lines"));
    assert!(
        world.error("write_file", json!({ "path": "d", "content": "" })).await.contains("no regular file")
    );
    assert!(
        world.error("write_file", json!({ "path": "pipe", "content": "" })).await.contains("no regular file")
    );
}

/// The beginning of a PNG of this size, and zeros.
fn png(width: u32, height: u32, bytes: usize) -> Vec<u8> {
    let start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
    let mut png = [start, &width.to_be_bytes(), &height.to_be_bytes()].concat();
    png.resize(bytes, 0);
    png
}

#[tokio::test]
async fn a_picture_is_seen_whatever_its_file_is_called() {
    let world = World::new();
    std::fs::write(world.workspace().join("notes.txt"), png(640, 480, 100)).unwrap();
    let output = world.call("read_file", world.invocation(json!({ "path": "notes.txt" }))).await;
    assert_eq!(output.text, "notes.txt: image/png, 640x480 pixels, 100 bytes");
    let [image] = output.images.as_slice() else { panic!("{output:?}") };
    assert!(!output.is_error && image.starts_with("data:image/png;base64,iVBORw0KGgo"), "{image}");
    world.ok("write_file", json!({ "path": "fake.png", "content": "PNG" })).await;
    assert_eq!(world.ok("read_file", json!({ "path": "fake.png" })).await["content"], "1|PNG\n");
}

#[tokio::test]
async fn a_picture_that_nobody_should_decode_is_refused() {
    let world = World::new();
    for (name, bytes, words) in [
        ("bomb.png", png(65_535, 65_535, 100), "65535x65535 pixels; at most 64000000"),
        ("large.png", png(10, 10, 6_000_000), "6000000 bytes; at most 5242880"),
        ("damaged.png", png(0, 10, 100), "its header is damaged"),
        ("paper.pdf", b"%PDF-1.7\0".to_vec(), "is a binary file of 9 bytes."),
    ] {
        std::fs::write(world.workspace().join(name), bytes).unwrap();
        let output = world.call("read_file", world.invocation(json!({ "path": name }))).await;
        assert!(
            output.is_error && output.images.is_empty() && output.text.contains(words),
            "{}",
            output.text
        );
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_workspace() {
    let world = World::new();
    let workspace = world.workspace();
    let secret = world.home.path().join("petasos.db");
    std::fs::write(&secret, "secret data").unwrap();
    let other = workspace.with_file_name("user-other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("theirs"), "secret data").unwrap();
    symlink(&secret, workspace.join("link")).unwrap();
    symlink("../user-other", workspace.join("relative_link")).unwrap();
    symlink(world.home.path(), workspace.join("directory_link")).unwrap();
    symlink("/proc/self/root", workspace.join("root")).unwrap();
    symlink("link", workspace.join("link_to_link")).unwrap();
    let secret = secret.display().to_string();
    for path in [
        secret.clone(),
        "../user-other/theirs".to_owned(),
        "a/../../user-other/theirs".to_owned(),
        format!("{}/../user-other/theirs", workspace.display()),
        "link".to_owned(),
        "link_to_link".to_owned(),
        "relative_link/theirs".to_owned(),
        "directory_link/petasos.db".to_owned(),
        format!("root{secret}"),
        "/proc/self/environ".to_owned(),
        format!("/proc/self/cwd/../..{secret}"),
        "/etc/passwd".to_owned(),
        "/dev/fd/0".to_owned(),
    ] {
        let text = world.error("read_file", json!({ "path": path })).await;
        assert!(!text.contains("secret data"), "{path}: {text}");
        let text = world.error("write_file", json!({ "path": path, "content": "overwritten" })).await;
        assert!(!text.is_empty());
    }
    for path in ["../escaped", "relative_link/new", "directory_link/new", "/tmp/petasos-escaped"] {
        world.error("write_file", json!({ "path": path, "content": "x" })).await;
    }
    assert_eq!(std::fs::read_to_string(world.home.path().join("petasos.db")).unwrap(), "secret data");
    assert_eq!(std::fs::read_to_string(other.join("theirs")).unwrap(), "secret data");
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
}

#[tokio::test]
async fn a_line_without_end_is_shown_in_part_and_its_length_named() {
    let world = World::new();
    let long = format!("first\n{}\nlast", "é".repeat(3_000_000));
    std::fs::write(world.workspace().join("long"), long).unwrap();
    let read = world.ok("read_file", json!({ "path": "long" })).await;
    let shown = format!("2|{} [… the line goes on; it has 6000000 bytes]", "é".repeat(2000));
    assert_eq!(read["content"], format!("1|first\n{shown}\n3|last\n"));
    assert_eq!(read["total_lines"], 3);
}

#[tokio::test]
async fn files_that_are_too_large_name_the_limit() {
    let world = World::new();
    let large = std::fs::File::create(world.workspace().join("large")).unwrap();
    large.set_len(60 << 20).unwrap();
    assert!(world.error("read_file", json!({ "path": "large" })).await.contains("at most 52428800 bytes"));
    let content = "x".repeat((10 << 20) + 1);
    let text = world.error("write_file", json!({ "path": "new", "content": content })).await;
    assert!(text.contains("at most 10485760 bytes"), "{text}");
    std::fs::write(world.workspace().join("lines"), "\n".repeat(300_000)).unwrap();
    let input = json!({ "path": "lines", "old_string": "a", "new_string": "b" });
    assert!(world.error("patch", input).await.contains("more than 250000 lines"));
}
