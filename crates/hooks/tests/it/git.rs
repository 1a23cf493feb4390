//! In the environment of hooks, git runs nothing that a workspace's configuration names.
//!
//! Each attack is tried twice with the git of this machine: as it is, to see that it works, and in our environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use petasos_hooks::hook_environment;
use tempfile::TempDir;

/// A repository with one commit, and a program in it that leaves a mark.
struct Workspace {
    directory: TempDir,
    env: BTreeMap<String, String>,
}

impl Workspace {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = std::env::vars_os().find(|(name, _)| name == "PATH").unwrap().1.into_string().unwrap();
        let home = directory.path().join("home").display().to_string();
        let mut env = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)]);
        for who in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{who}_NAME"), "Ada".to_owned());
            env.insert(format!("GIT_{who}_EMAIL"), "ada@example.com".to_owned());
        }
        let workspace = Workspace { directory, env };
        std::fs::create_dir(workspace.repository()).unwrap();
        let evil = format!("#!/bin/sh\ntouch {}\n", workspace.mark().display());
        std::fs::write(workspace.repository().join("evil"), evil).unwrap();
        workspace.sh(&workspace.env, "git init -q && chmod +x evil && git add evil && git commit -qm first");
        workspace
    }

    fn repository(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    fn mark(&self) -> PathBuf {
        self.directory.path().join("mark")
    }

    /// Runs a script in the repository and says whether the evil program ran.
    #[expect(clippy::disallowed_methods, reason = "the test stands for a hook that runs git")]
    fn sh(&self, env: &BTreeMap<String, String>, script: &str) -> bool {
        let _ = std::fs::remove_file(self.mark());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(self.repository()).env_clear().envs(env);
        command.env("EVIL", self.repository().join("evil")).stdin(Stdio::null());
        command.output().unwrap();
        self.mark().exists()
    }
}

#[track_caller]
fn assert_turned_off(name: &str, setup: &str, script: &str) {
    let works = |protect: bool| {
        let workspace = Workspace::new();
        workspace.sh(&workspace.env, setup);
        let env = if protect { hook_environment(workspace.env.clone()) } else { workspace.env.clone() };
        workspace.sh(&env, script)
    };
    assert!(works(false), "{name}: the attack itself no longer works");
    assert!(!works(true), "{name}: ran what the workspace's configuration names");
}

#[test]
fn status_runs_nothing() {
    assert_turned_off("fsmonitor", "git config core.fsmonitor $EVIL", "git status");
    let include = "git config include.path ../more; printf '[core]\\nfsmonitor = %s\\n' $EVIL > more";
    assert_turned_off("include", include, "git status");
    let hook = "cp evil .git/hooks/post-index-change; touch -d @0 evil";
    assert_turned_off("hooks directory", hook, "git status");
    let submodule = "git init -q sub && cd sub && git commit -qm first --allow-empty && cd .. && git add sub && \
                     git -C sub config core.fsmonitor $EVIL";
    assert_turned_off("submodule", submodule, "git status");
}

#[test]
fn hooks_of_the_repository_do_not_run() {
    let path = "mkdir hooks && cp evil hooks/post-checkout && git config core.hooksPath hooks";
    assert_turned_off("hooksPath", path, "git checkout -q -b other");
    assert_turned_off("pre-commit", "cp evil .git/hooks/pre-commit", "git commit -qm x --allow-empty");
}

#[test]
fn credential_helpers_and_prompts_do_not_run() {
    let fill = r"printf 'protocol=https\nhost=example.com\n\n' | git credential fill";
    assert_turned_off("helper", r#"git config credential.helper "!$EVIL;:""#, fill);
    let named = r#"git config credential.https://example.com.helper "!$EVIL;:""#;
    assert_turned_off("helper of an address", named, fill);
    assert_turned_off("askPass", "git config core.askPass $EVIL", fill);
}

#[test]
fn editors_and_filters_do_not_run() {
    assert_turned_off("editor", "git config core.editor $EVIL", "git commit --allow-empty");
    let second = "git commit -qm second --allow-empty; git config sequence.editor $EVIL";
    assert_turned_off("sequence.editor", second, "git rebase -q -i HEAD~1 --keep-empty");
    let filter = "git config color.ui always; git config interactive.diffFilter \"$EVIL;cat\"; echo >> evil";
    assert_turned_off("diffFilter", filter, "echo q | git add -p");
    assert_turned_off("archive", "git config tar.tgz.command $EVIL", "git archive --format=tgz HEAD");
}

#[test]
fn transports_do_not_run_programs() {
    assert_turned_off("sshCommand", "git config core.sshCommand $EVIL", "git ls-remote ssh://127.0.0.1:1/x");
    assert_turned_off("gitProxy", "git config core.gitProxy $EVIL", "git ls-remote git://127.0.0.1:1/x");
    let ext = "git config protocol.ext.allow always; git config remote.origin.url \"ext::$EVIL\"";
    assert_turned_off("ext", ext, "git ls-remote origin");
    let local = "git config remote.origin.url .; git config remote.origin.uploadpack $EVIL";
    assert_turned_off("uploadpack", local, "git ls-remote origin");
    let alternates = "git init -q ../other && git -C ../other commit -qm x --allow-empty && \
                      echo \"$PWD/../other/.git/objects\" > .git/objects/info/alternates && \
                      git config core.alternateRefsCommand \"$EVIL;:\"";
    assert_turned_off("alternateRefsCommand", alternates, "printf 0000 | git receive-pack .");
}

#[test]
fn signatures_are_left_to_the_usual_programs() {
    let commit = "git commit -qm x --allow-empty";
    for (format, key) in
        [("openpgp", "gpg.program"), ("openpgp", "gpg.openpgp.program"), ("x509", "gpg.x509.program")]
    {
        let setup = format!(
            "git config commit.gpgSign true; git config gpg.format {format}; git config {key} $EVIL; \
             git config user.signingKey x"
        );
        assert_turned_off(key, &setup, commit);
    }
    let ssh = "git config commit.gpgSign true; git config gpg.format ssh;";
    let program = format!("{ssh} git config gpg.ssh.program $EVIL; git config user.signingKey /dev/null");
    assert_turned_off("gpg.ssh.program", &program, commit);
    let key = format!("{ssh} git config gpg.ssh.defaultKeyCommand $EVIL");
    assert_turned_off("gpg.ssh.defaultKeyCommand", &key, commit);
}

#[test]
fn log_verifies_no_signature_of_its_own_accord() {
    let signed = r"commit=$({ git cat-file commit HEAD | sed -n '1,/^committer/p'
        printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n'
        } | git hash-object -t commit -w --stdin) && git reset -q --soft $commit &&
        git config gpg.program $EVIL";
    assert_turned_off("showSignature", &format!("{signed}; git config log.showSignature true"), "git log");
    assert_turned_off("format.pretty", &format!("{signed}; git config format.pretty %G?"), "git log");
}

#[test]
fn files_that_look_like_a_bare_repository_are_none() {
    let workspace = Workspace::new();
    let bare = workspace.directory.path().join("repository/bare");
    let setup = "git init -q --bare bare";
    workspace.sh(&workspace.env, setup);
    let found = |env: &BTreeMap<String, String>| {
        workspace.sh(
            env,
            &format!(
                "cd {} && git rev-parse --is-bare-repository | grep -q true && ./../evil",
                bare.display()
            ),
        )
    };
    assert!(found(&workspace.env));
    assert!(!found(&hook_environment(workspace.env.clone())));
}

#[test]
fn ordinary_commands_work_and_the_operators_settings_count() {
    let workspace = Workspace::new();
    let mut env = workspace.env.clone();
    env.extend(
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "alias.mark"), ("GIT_CONFIG_VALUE_0", "!./evil")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let env = hook_environment(env);
    let usual = "git status --porcelain && echo more >> evil && git diff --stat && git add -A && git commit -qm more && \
                 git log --oneline && git show --stat && git archive --format=tgz HEAD > /dev/null && git mark";
    assert!(workspace.sh(&env, usual));
    assert!(Path::new(&workspace.repository().join(".git")).exists());
}
