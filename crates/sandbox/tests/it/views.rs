//! What a command sees where it has namespaces of its own, and what is told where it has none.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use petasos_sandbox::{Kernel, Settings, Streams, TerminalSize};

use crate::world::{World, finish};

/// A world with a home around its workspace; none, and a word about it, where there are no namespaces.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know")]
fn world() -> Option<World> {
    let world = World::new();
    if !kept(&world, "commands cannot see other processes") {
        eprintln!("SKIPPED: there are no namespaces for this user here");
        return None;
    }
    std::fs::write(world.directory.path().join("admin.key"), "hidden").unwrap();
    Some(world)
}

fn kept(world: &World, promise: &str) -> bool {
    let promises = &world.sandbox.report().promises;
    promises.iter().find(|found| found.promise == promise).unwrap_or_else(|| panic!("{promises:?}")).kept
}

#[tokio::test]
async fn nothing_of_the_home_is_there() {
    let Some(world) = world() else { return };
    let key = world.directory.path().join("admin.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let before = std::fs::metadata(&key).unwrap();
    let (key, home) = (key.display(), world.directory.path().display());
    for attack in [
        format!("stat {key}"),
        format!("chmod 644 {key}"),
        format!("chown 1:1 {key}"),
        format!("touch -d 2001-01-01 {key}"),
        format!("python3 -c 'import os; os.setxattr(\"{key}\", \"user.x\", b\"x\")'"),
        format!("ln {key} mine"),
        format!("mv {key} mine"),
        format!("chmod 755 {home}"),
        format!("chmod 000 {home}"),
        "touch ..".to_owned(),
        "chmod 777 ..".to_owned(),
        "cd .. && ls -la | grep admin.key".to_owned(),
        "chmod 700 /usr".to_owned(),
        "chmod u+s /usr/bin/env".to_owned(),
        "touch /usr/bin/env".to_owned(),
        "touch /dev/null".to_owned(),
        "chmod 600 /dev/null".to_owned(),
        "mkdir /elsewhere".to_owned(),
        "test -e /root -o -e /home -o -e /var/lib".to_owned(),
    ] {
        let finished = world.run(&attack).await;
        assert_ne!(finished.ended.code, Some(0), "{attack}: {finished:?}");
    }
    let after = std::fs::metadata(world.directory.path().join("admin.key")).unwrap();
    assert_eq!((before.mode(), before.uid(), before.mtime()), (after.mode(), after.uid(), after.mtime()));
    // In the workspace all of that works.
    let finished =
        world.run("echo x > a && chmod 700 a && touch -d 2001-01-01 a && ln a b && mv b c && ls").await;
    assert_eq!(finished.output, "a\nc\n", "{finished:?}");
}

#[tokio::test]
async fn only_own_processes_are_there() {
    let Some(world) = world() else { return };
    let finished = world.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l").await;
    let server = std::fs::read_to_string("/proc/self/cmdline").unwrap();
    assert!(!finished.output.contains(&server.replace('\0', " ")), "{finished:?}");
    let count: usize = finished.output.lines().last().unwrap().trim().parse().unwrap();
    assert!(count < 10, "{finished:?}");
}

#[tokio::test]
async fn terminals_of_others_are_not_there() {
    let Some(world) = world() else { return };
    // A terminal of somebody else, and what this test has.
    let theirs =
        rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&theirs).unwrap();
    rustix::pty::unlockpt(&theirs).unwrap();
    let name = rustix::pty::ptsname(&theirs, Vec::new()).unwrap().into_string().unwrap();
    for settings in [Settings::default(), Settings { kernel: bare(), ..Settings::default() }] {
        let world = World::with(settings);
        let finished = world.run(&format!("echo fake > {name} || cat < {name}")).await;
        assert_ne!(finished.ended.code, Some(0), "{finished:?}");
    }
    // New ones are the command's own.
    let finished = world.run("script -qec 'tty' /dev/null").await;
    assert!(finished.output.contains("/dev/pts/0"), "{finished:?}");
}

#[tokio::test]
async fn a_terminal_of_its_own_is_all_that_a_command_has() {
    let Some(world) = world() else { return };
    let mut command = world.command("tty; ls /dev/pts | wc -l");
    command.streams = Streams::Terminal(TerminalSize { rows: 24, columns: 80 });
    let said = finish(world.sandbox.start(command).unwrap()).await.output;
    assert!(said.starts_with("/dev/pts/") && said.trim_end().ends_with('1'), "{said}");
}

fn bare() -> Kernel {
    Kernel { namespaces: false, ..Kernel::default() }
}

#[tokio::test]
async fn what_older_kernels_cannot_keep_is_told_and_the_other_walls_hold() {
    let signal = "commands cannot signal the server";
    for (landlock_abi, can_signal) in [(1, true), (2, true), (5, true), (6, false)] {
        let kernel = Kernel { landlock_abi, namespaces: false };
        let world = World::with(Settings { kernel, ..Settings::default() });
        assert_eq!(kept(&world, signal), !can_signal, "{landlock_abi}");
        assert_eq!(world.sandbox.report().level(), "partial");
        let finished = world.run(&format!("kill -0 {}", std::process::id())).await;
        assert_eq!(finished.ended.code == Some(0), can_signal, "{landlock_abi}: {finished:?}");
        // Truncating is refused by whatever can.
        let file = world.directory.path().join("admin.key");
        std::fs::write(&file, "hidden").unwrap();
        let attack = format!("python3 -c 'import os; os.truncate(\"{}\", 0)'", file.display());
        assert_ne!(world.run(&attack).await.ended.code, Some(0), "{landlock_abi}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hidden");
    }
}

#[tokio::test]
async fn no_pair_of_sockets_reaches_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let theirs = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    theirs.set_nonblocking(true).unwrap();
    for kernel in [Kernel::default(), bare()] {
        let world = World::with(Settings { kernel, ..Settings::default() });
        for kind in ["SOCK_DGRAM", "SOCK_RAW"] {
            let code = format!(
                "import socket as s; s.socketpair(s.AF_UNIX, s.{kind})[0].sendto(b\"x\", \"{}\")",
                path.display()
            );
            assert_ne!(world.run(&format!("python3 -c '{code}'")).await.ended.code, Some(0));
        }
        let usual =
            "python3 -c 'import socket; socket.socketpair(); socket.socketpair(type=socket.SOCK_SEQPACKET)'";
        assert_eq!(world.run(usual).await.ended.code, Some(0));
    }
    assert!(theirs.recv(&mut [0; 8]).is_err());
}

#[tokio::test]
async fn settings_of_the_system_are_out_of_sight() {
    let file = std::path::Path::new("/etc/petasos.env");
    if file.exists() || std::fs::write(file, "KEY=hidden").is_err() {
        eprintln!("SKIPPED: {} cannot be written here", file.display());
        return;
    }
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut told = String::new();
    for kernel in [Kernel::default(), bare()] {
        told +=
            &World::with(Settings { kernel, ..Settings::default() }).run("cat /etc/petasos.env").await.output;
    }
    std::fs::remove_file(file).unwrap();
    assert!(!told.contains("hidden"), "{told}");
}
