//! The backend bubblewrap, where the program is there and the kernel lets it work.

use petasos_sandbox::{Backend, Network, Settings, find};

use crate::world::{World, finish, gone, line};

/// A world of that backend; none, and a word about it, where it cannot be used.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know")]
async fn world(settings: Settings) -> Option<World> {
    let unconfined = World::with(Settings { backend: Backend::Unconfined, ..Settings::default() });
    let works = match find("bwrap") {
        Some(_) => unconfined.run("bwrap --unshare-all --ro-bind / / true").await.ended.code == Some(0),
        None => false,
    };
    if !works {
        eprintln!("SKIPPED: bubblewrap cannot be used here");
        return None;
    }
    Some(World::with(Settings { backend: Backend::Bubblewrap, ..settings }))
}

async fn refused(world: &World, script: &str) -> String {
    let finished = world.run(script).await;
    assert_ne!(finished.ended.code, Some(0), "{script}: {finished:?}");
    finished.output
}

async fn allowed(world: &World, script: &str) -> String {
    let finished = world.run(script).await;
    assert_eq!(finished.ended.code, Some(0), "{script}: {finished:?}");
    finished.output
}

#[tokio::test]
async fn a_command_works_in_its_workspace_and_sees_nothing_else() {
    let Some(world) = world(Settings::default()).await else { return };
    let secret = world.directory.path().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let secret = secret.display();
    allowed(&world, "echo x > here && mkdir -p a/b && mv here a/b && cat a/b/here").await;
    assert_eq!(std::fs::read_to_string(world.workspace().join("a/b/here")).unwrap(), "x\n");
    for script in [
        format!("cat {secret}"),
        "cat ../secret".to_owned(),
        format!("ln -s {secret} link && cat link"),
        format!("cat /proc/self/root{secret}"),
        "echo x > /etc/petasos-was-here".to_owned(),
        "echo x > /usr/petasos-was-here".to_owned(),
        "ls /root".to_owned(),
        "test -s /etc/shadow && cat /etc/shadow".to_owned(),
    ] {
        let output = refused(&world, &script).await;
        assert!(!output.contains("hidden"), "{script}: {output}");
    }
    allowed(&world, "cat /etc/passwd").await;
    // What it writes beside is its own and gone with it.
    allowed(&world, "echo x > ../beside && echo x > /tmp/petasos-was-here").await;
    assert!(!world.directory.path().join("beside").exists());
    assert!(!std::path::Path::new("/tmp/petasos-was-here").exists());
}

#[tokio::test]
async fn privileges_and_other_processes_are_out_of_reach() {
    let Some(world) = world(Settings::default()).await else { return };
    let output = allowed(&world, "grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status").await;
    let values: Vec<&str> = output.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(values, ["CapPrm:", none, "CapEff:", none, "NoNewPrivs:", "1"], "{output}");
    refused(&world, "mount -t tmpfs none .").await;
    refused(&world, "mount -o remount,rw /usr").await;
    refused(&world, &format!("cat /proc/{}/environ", std::process::id())).await;
    assert_eq!(allowed(&world, "env | grep -c CARGO || true").await.trim(), "0");
}

#[tokio::test]
async fn the_network_is_a_setting() {
    let devices = "ls /sys/class/net 2>/dev/null || tail -n +3 /proc/net/dev | wc -l";
    let Some(closed) = world(Settings::default()).await else { return };
    assert_eq!(allowed(&closed, devices).await.trim(), "1", "only the loopback device is there");
    let Some(open) = world(Settings { network: Network::All, ..Settings::default() }).await else { return };
    let host = World::with(Settings { backend: Backend::Unconfined, ..Settings::default() });
    let count = "tail -n +3 /proc/net/dev | wc -l";
    assert_eq!(allowed(&open, count).await, allowed(&host, count).await);
    // Sockets without a file belong to the network, and are still out of reach.
    let socket = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
    let pair = "python3 -c 'import socket; socket.socketpair(type=socket.SOCK_DGRAM)'";
    refused(&open, socket).await;
    refused(&open, pair).await;
    let settings = Settings { network: Network::All, unix_sockets: true, ..Settings::default() };
    let Some(local) = world(settings).await else { return };
    allowed(&local, socket).await;
}

#[tokio::test]
async fn everything_ends_with_the_command() {
    let Some(world) = world(Settings::default()).await else { return };
    let finished = world.run("setsid sleep 60 & echo out; echo err >&2; exit 3").await;
    assert_eq!((finished.output.as_str(), finished.ended.code), ("out\nerr\n", Some(3)));
    // Processes have other numbers inside, so a name tells them apart.
    let name = format!("{}", 600_000 + std::process::id());
    let mut process = world.start(&format!("setsid sleep {name} & echo ready; sleep 60"));
    assert_eq!(line(&mut process).await, "ready");
    let host = World::with(Settings { backend: Backend::Unconfined, ..Settings::default() });
    let find = format!("pgrep -f 'sleep {name}' | grep -v $$ | head -1");
    let pid = finish(host.start(&find)).await.output.trim().to_owned();
    assert!(!pid.is_empty(), "the process is not there");
    drop(process);
    gone(&pid).await;
}
