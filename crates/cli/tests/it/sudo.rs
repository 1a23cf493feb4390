//! The real `sudo`, with a user of its own. It changes the system's users, so it runs only where the variable
//! `PETASOS_TEST_SUDO` asks for it, as root.

use std::path::Path;
use std::process::Command;

use crate::installation::Installation;

const USER: &str = "petasos-test";
const RULE: &str = "/etc/sudoers.d/petasos-test";

/// A user with a password who may do everything by sudo. Dropping it removes the user.
struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// The user, or none and a word about it.
    #[expect(clippy::disallowed_methods, clippy::print_stderr, reason = "a switch for whoever runs the test")]
    fn create() -> Option<User> {
        let is_root = run("id -u") == "0\n";
        if std::env::var_os("PETASOS_TEST_SUDO").is_none() || !is_root || !Path::new("/usr/bin/sudo").exists()
        {
            eprintln!(
                "SKIPPED: the real sudo is tested with PETASOS_TEST_SUDO=1, as root, where it is installed"
            );
            return None;
        }
        run(&format!(
            "userdel -f {USER} 2>/dev/null; useradd -m {USER} && echo '{USER}:right-word' | chpasswd"
        ));
        run(&format!("echo '{USER} ALL=(ALL) ALL' > {RULE} && chmod 440 {RULE}"));
        let [uid, gid] = ["-u", "-g"].map(|what| run(&format!("id {what} {USER}")).trim().parse().unwrap());
        Some(User { uid, gid })
    }
}

impl Drop for User {
    fn drop(&mut self) {
        run(&format!("rm -f {RULE}; pkill -KILL -u {USER}; userdel -rf {USER} 2>/dev/null"));
    }
}

#[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
fn run(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn only_what_the_real_sudo_starts_is_outside_the_sandbox() {
    let Some(user) = User::create() else { return };
    let installation = Installation::of_user(user.uid, user.gid);
    installation.write("config.yaml", "sandbox: {sudo: true}\n");
    let mut chat = installation.talk(&["chat", "--model", "demo/fast"]);
    chat.wait_for("demo/fast). /help");
    for (password, told) in [("wrong-word", "sudo does not take the password"), ("right-word", "0 in IN")] {
        chat.say("call terminal {\"command\": \"touch ran; echo in | sudo tr a-z A-Z > up; echo $(sudo id -u) in $(cat up); id -u; cat admin.key\"}");
        chat.wait_for("? Allow terminal");
        chat.say("y");
        chat.wait_for("? The password for sudo");
        chat.say(password);
        chat.wait_for(told);
        chat.wait_for("\n");
    }
    let ended = chat.finish();
    assert!(ended.success && !ended.stdout.contains("right-word"), "{ended:?}");
}
