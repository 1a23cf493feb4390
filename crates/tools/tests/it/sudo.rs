//! `sudo` in commands, with a program in its place that takes one password and runs what it is given.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use petasos_sandbox::Settings;
use petasos_tools::{Risk, ToolOutput};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::world::World;

/// Asks as `sudo` does: `-n` never, otherwise the program of SUDO_ASKPASS.
const SUDO: &str = r#"#!/bin/bash
while getopts kAnvp: option; do declare "o_$option=1"; done
shift $((OPTIND - 1))
if [ -n "$o_n" ]; then echo "sudo: a password is required" >&2; exit 1; fi
[ "$("$SUDO_ASKPASS" prompt)" = hunter22 ] || { echo "sudo: 1 incorrect password attempt" >&2; exit 1; }
[ -n "$o_v" ] && exit 0
exec "$@"
"#;

struct Installed {
    world: World,
    directory: TempDir,
}

impl Installed {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("sudo");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let world = World::with(Settings { sudo: Some(program), ..Settings::default() });
        Installed { world, directory }
    }

    /// Something that no confined command can read.
    fn secret(&self) -> PathBuf {
        let path = self.directory.path().join("secret");
        std::fs::write(&path, "outside\n").unwrap();
        path
    }

    async fn run(&self, command: &str, password: Option<&str>) -> ToolOutput {
        let mut call = self.world.invocation(json!({ "command": command }));
        call.sudo_password = password.map(Into::into);
        self.world.call("terminal", call).await
    }

    /// What a command wrote that was given the right password.
    async fn output(&self, command: &str) -> String {
        let output = self.run(command, Some("hunter22")).await;
        assert!(!output.is_error, "{command}: {}", output.text);
        let result: Value = serde_json::from_str(&output.text).unwrap();
        result["output"].as_str().unwrap().to_owned()
    }
}

fn input(command: &str) -> Map<String, Value> {
    Map::from_iter([("command".to_owned(), command.into())])
}

#[tokio::test]
async fn sudo_is_off_unless_the_settings_say_otherwise() {
    let world = World::new();
    let tool = world.toolbox.get("terminal").unwrap();
    assert_eq!(tool.sudo_command(&input("sudo ls")), None);
    let Risk::Forbidden { reason } = tool.risk(&input("sudo ls")) else { panic!("it may run") };
    assert!(reason.contains("sandbox.sudo"), "{reason}");
    let mut call = world.invocation(json!({ "command": "echo x > file; sudo true" }));
    call.sudo_password = Some("hunter22".into());
    let output = world.call("terminal", call).await;
    assert!(output.is_error && output.text.contains("sandbox.sudo"), "{}", output.text);
    assert!(!world.workspace().join("file").exists());
}

#[tokio::test]
async fn other_tenants_never_call_sudo() {
    let installed = Installed::new(SUDO);
    let tool = installed.world.toolbox.get("terminal").unwrap();
    assert_eq!(tool.sudo_command(&input("sudo ls")).as_deref(), Some("sudo ls"));
    assert_eq!(tool.refusal(&input("sudo ls"), &"default".parse().unwrap()), None);
    assert_eq!(tool.refusal(&input("ls"), &"globex".parse().unwrap()), None);
    let mut call = installed.world.invocation(json!({ "command": "sudo true" }));
    call.tenant = "globex".parse().unwrap();
    call.sudo_password = Some("hunter22".into());
    let output = installed.world.call("terminal", call).await;
    assert!(output.is_error && output.text.contains("tenant default"), "{}", output.text);
}

#[tokio::test]
async fn only_what_sudo_starts_is_outside_the_sandbox() {
    let installed = Installed::new(SUDO);
    let secret = installed.secret();
    let command = format!(
        "cat {0}; sudo cat {0}; grep NoNewPrivs /proc/self/status; sudo grep NoNewPrivs /proc/self/status; cat {0}",
        secret.display()
    );
    let output = installed.output(&command).await;
    let told: Vec<&str> = output.lines().filter(|line| !line.starts_with("cat:")).collect();
    assert_eq!(told, ["outside", "NoNewPrivs:\t1", "NoNewPrivs:\t0"], "{output}");
}

#[tokio::test]
async fn streams_directory_and_codes_pass_through() {
    let installed = Installed::new(SUDO);
    let command = "mkdir -p a; cd a; echo in | sudo tr a-z A-Z > out; cat out; echo more | sudo tee -a out; cat out; \
                   sudo sh -c 'pwd; exit 7' 2>&1; echo $?";
    let workspace = installed.world.workspace();
    let output = installed.output(command).await;
    assert_eq!(output, format!("IN\nmore\nIN\nmore\n{}/a\n7\n", workspace.display()));
    let outside = installed.output("cd /usr && sudo pwd; echo $?").await;
    assert!(outside.contains("outside the workspace") && outside.ends_with("1\n"), "{outside}");
}

#[tokio::test]
async fn nobody_but_sudo_reads_the_password() {
    let installed = Installed::new(SUDO);
    let output = installed.output("cat; env; sudo cat; sudo env; sudo sh -c '\"$SUDO_ASKPASS\"'; cat").await;
    assert!(!output.contains("hunter22") && !output.contains("[redacted]"), "{output}");
}

#[tokio::test]
async fn calls_that_are_not_in_the_line_are_refused() {
    let installed = Installed::new(SUDO);
    let secret = installed.secret();
    let script = format!("sudo cat {}\n", secret.display());
    installed.world.ok("write_file", json!({ "path": "run.sh", "content": script })).await;
    let output = installed.output("sh run.sh; sudo echo one; sudo echo one; echo done").await;
    assert!(
        output.contains("not in the command that was allowed") && !output.contains("outside"),
        "{output}"
    );
    assert!(output.ends_with("one\none\ndone\n"), "{output}");
    let output = installed.output("for i in 1 2; do sudo echo once; done").await;
    assert!(output.starts_with("once\n") && output.contains("was made already"), "{output}");
}

#[tokio::test]
async fn nothing_runs_with_a_wrong_password_or_without_one() {
    let installed = Installed::new(SUDO);
    for password in [Some("made-up-password"), None] {
        let output = installed.run("echo x > file; sudo true", password).await;
        assert!(output.is_error && output.text.contains("password"), "{}", output.text);
        assert!(!output.text.contains("made-up"), "{}", output.text);
        assert!(!installed.world.workspace().join("file").exists());
    }
}

#[tokio::test]
async fn an_account_that_needs_no_password_is_refused() {
    let installed = Installed::new("#!/bin/sh\nexit 0\n");
    let output = installed.run("echo x > file; sudo true", Some("anything")).await;
    assert!(output.is_error && output.text.contains("NOPASSWD"), "{}", output.text);
    assert!(!installed.world.workspace().join("file").exists());
}

#[tokio::test]
async fn what_sudo_runs_ends_with_its_command() {
    let installed = Installed::new(SUDO);
    let command = "mkfifo pipe; sudo sh -c 'echo $$ > id; exec sleep 600' & until [ -s id ]; do sleep 0.01; done; cat id";
    let output = installed.output(command).await;
    let stat = format!("/proc/{}/stat", output.trim());
    petasos_testkit::within("the end of what sudo ran", async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
