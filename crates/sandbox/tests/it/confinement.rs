//! What a command cannot do.

use petasos_sandbox::{Backend, Fallback, Kernel, Network, Settings};

use crate::world::World;

/// Runs a script that must fail, and returns what it said.
async fn refused(world: &World, script: &str) -> String {
    let finished = world.run(script).await;
    assert_ne!(finished.ended.code, Some(0), "{script}: {finished:?}");
    assert_eq!(finished.ended.problem, None, "{script}");
    finished.output
}

async fn allowed(world: &World, script: &str) -> String {
    let finished = world.run(script).await;
    assert_eq!(finished.ended.code, Some(0), "{script}: {finished:?}");
    finished.output
}

/// A world as on a system that has no namespaces for us.
fn bare() -> World {
    with_kernel(i32::MAX)
}

/// The same, with an older version of Landlock.
fn with_kernel(landlock_abi: i32) -> World {
    let kernel = Kernel { landlock_abi, namespaces: false };
    World::with(Settings { kernel, ..Settings::default() })
}

#[tokio::test]
async fn files_outside_are_out_of_reach() {
    for world in [World::new(), bare(), with_kernel(1)] {
        files_outside(&world).await;
    }
}

async fn files_outside(world: &World) {
    let secret = world.directory.path().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    std::fs::create_dir(world.directory.path().join("other")).unwrap();
    let secret = secret.display();
    allowed(world, "echo x > here && mkdir -p a/b && cat here && rm -r a here").await;
    for script in [
        format!("cat {secret}"),
        "cat ../secret".to_owned(),
        format!("ln -s {secret} link && cat link"),
        format!("ln {secret} hard"),
        format!("cat /proc/self/root{secret}"),
        "cat /proc/self/cwd/../secret".to_owned(),
        format!("cat /proc/$PPID/root{secret}"),
        format!("echo x > {secret}"),
        format!("truncate -s 0 {secret}"),
        format!("rm {secret}"),
        "echo x > ../other/file".to_owned(),
        "mkdir ../another".to_owned(),
        "echo x > /etc/petasos-was-here".to_owned(),
        "ls ..".to_owned(),
        "ls /root /home".to_owned(),
        "echo x > /tmp/petasos-was-here".to_owned(),
    ] {
        let output = refused(world, &script).await;
        assert!(!output.contains("hidden"), "{script}: {output}");
    }
    assert_eq!(std::fs::read_to_string(world.directory.path().join("secret")).unwrap(), "hidden");
}

#[tokio::test]
async fn our_own_data_is_hidden_wherever_it_lies() {
    let world = World::new();
    let data = world.directory.path().to_owned();
    std::fs::write(data.join("petasos.db"), "hidden").unwrap();
    std::fs::create_dir(data.join("programs")).unwrap();
    std::fs::write(data.join("programs/tool"), "useful").unwrap();
    let parent = data.parent().unwrap().to_owned();
    let settings = Settings { read: vec![parent], hidden: vec![data.clone()], ..Settings::default() };
    let inner = World::with(settings);
    refused(&inner, &format!("cat {}", data.join("petasos.db").display())).await;
    let hidden = vec![data.join("petasos.db"), data.join("petasos.db-wal")];
    let inner = World::with(Settings { read: vec![data.clone()], hidden, ..Settings::default() });
    refused(&inner, &format!("cat {}", data.join("petasos.db").display())).await;
    // Nor is what comes later.
    std::fs::write(data.join("petasos.db-wal"), "hidden").unwrap();
    refused(&inner, &format!("cat {}", data.join("petasos.db-wal").display())).await;
    assert_eq!(allowed(&inner, &format!("cat {}", data.join("programs/tool").display())).await, "useful");
    let settings = Settings { read: vec![data.join("programs")], ..Settings::default() };
    let inner = World::with(settings);
    assert_eq!(allowed(&inner, &format!("cat {}", data.join("programs/tool").display())).await, "useful");
}

#[tokio::test]
async fn what_only_root_may_read_stays_so() {
    let world = World::new();
    refused(&world, "cat /etc/shadow").await;
    refused(&bare(), "cat /etc/shadow").await;
    allowed(&world, "cat /etc/passwd && ls /etc").await;
    allowed(&bare(), "cat /etc/passwd && ls /etc").await;
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let world = World::new();
    let server = std::process::id();
    refused(&world, &format!("cat /proc/{server}/environ")).await;
    refused(&world, &format!("ls /proc/{server}/fd/ && cat /proc/{server}/fd/0")).await;
    refused(&world, "kill -9 $PPID").await;
    refused(&world, &format!("kill -0 {server}")).await;
}

#[tokio::test]
async fn nothing_is_left_in_the_kernel_for_others_to_find() {
    let world = World::new();
    for call in ["shmget(0x5eed, 4096, 0o1666)", "semget(0x5eed, 1, 0o1666)", "msgget(0x5eed, 0o1666)"] {
        let code = format!("import ctypes, os; os._exit(ctypes.CDLL(None).{call} < 0)");
        refused(&world, &format!("python3 -c '{code}'")).await;
    }
}

#[tokio::test]
async fn the_environment_is_clean() {
    let world = World::new();
    let mut command = world.command("env | sort");
    command.env = [("TOKEN".to_owned(), "given".to_owned())].into();
    let output = crate::world::finish(world.sandbox.start(command).unwrap()).await.output;
    let names: Vec<&str> = output.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(names, ["HOME", "LANG", "PATH", "PWD", "SHLVL", "TOKEN", "_"], "{output}");
}

#[tokio::test]
async fn nothing_but_the_settings_opens_the_network() {
    let connect = |family: &str| format!("python3 -c 'import socket; socket.socket(socket.{family})'");
    let closed = World::new();
    refused(&closed, &connect("AF_INET")).await;
    refused(&closed, &connect("AF_UNIX")).await;
    let open = World::with(Settings { network: Network::All, ..Settings::default() });
    allowed(&open, &connect("AF_INET")).await;
    refused(&open, &connect("AF_UNIX")).await;
    let local = World::with(Settings { unix_sockets: true, ..Settings::default() });
    refused(&local, &connect("AF_INET")).await;
    allowed(&local, &connect("AF_UNIX")).await;
}

#[tokio::test]
async fn privileges_do_not_come_back() {
    let world = World::new();
    let output = allowed(&world, "grep -E 'CapEff|CapPrm|NoNewPrivs|Seccomp:' /proc/self/status").await;
    let values: Vec<&str> = output.split_whitespace().collect();
    let none = "0000000000000000";
    assert_eq!(values, ["CapPrm:", none, "CapEff:", none, "NoNewPrivs:", "1", "Seccomp:", "2"], "{output}");
    refused(&world, "unshare -Ur true").await;
    refused(&world, "mount -t tmpfs none .").await;
}

#[tokio::test]
async fn what_cannot_be_confined_is_refused_unless_the_settings_say_otherwise() {
    let backend = Backend::Bubblewrap;
    let world = World::with(Settings { backend: backend.clone(), ..Settings::default() });
    if world.sandbox.report().missing.is_none() {
        // Bubblewrap is installed, so it is used.
        allowed(&world, "echo x > file").await;
        return;
    }
    let error = world.sandbox.start(world.command("true")).err().unwrap().to_string();
    assert!(error.contains("bwrap is not installed") && error.contains("sandbox.fallback"), "{error}");
    let fallback = Fallback::Unconfined;
    let world = World::with(Settings { backend, fallback, ..Settings::default() });
    let output = allowed(&world, "grep NoNewPrivs /proc/self/status").await;
    assert_eq!(output.split_whitespace().last(), Some("0"));
    assert!(world.sandbox.report().missing.is_some());
}
