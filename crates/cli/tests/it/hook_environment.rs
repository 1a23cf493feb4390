//! Hooks run in the workspace, which a model writes to, with the server's rights: nothing in it may run by itself.

use std::path::PathBuf;

use serde_json::json;

use crate::hooks::script;
use crate::installation::Installation;

fn path_of_tests() -> String {
    std::env::vars_os().find(|(name, _)| name == "PATH").unwrap().1.into_string().unwrap()
}

/// The id of the session of a turn.
fn turn(installation: &Installation, arguments: &[&str]) -> String {
    let flags = ["--accept-hooks", "run", "--json"];
    let finished = installation.run(&[&flags, arguments].concat());
    assert!(finished.success, "{finished:?}");
    let said: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    said["session_id"].as_str().or_else(|| said["sessionId"].as_str()).unwrap().to_owned()
}

#[test]
fn a_workspace_cannot_have_hooks_run_its_code() {
    let installation = Installation::new().with_env("PATH", format!(".::{}", path_of_tests()));
    let here = installation.home().display().to_string();
    let body = format!(
        "cat > /dev/null\npwd >> {here}/directories\ngit status > /dev/null\n\
         python3 -c 'import json' || echo failed > {here}/mark\nmarker || true"
    );
    let command = script(&installation, "look.sh", &body);
    let at_home = script(&installation, "home.sh", &format!("cat > /dev/null; pwd > {here}/at-home"));
    let config = format!(
        "hooks:\n  pre_llm_call:\n    - command: {command}\n    - command: {at_home}\n      cwd: home\n"
    );
    installation.write("config.yaml", config);
    let session = turn(&installation, &["--model", "demo/fast", "hello"]);
    let directories = || std::fs::read_to_string(installation.file("directories")).unwrap();
    let workspace = PathBuf::from(directories().trim());
    assert!(workspace.starts_with(installation.file("workspaces")), "{}", workspace.display());
    assert_eq!(std::fs::read_to_string(installation.file("at-home")).unwrap().trim(), here);

    let mark = installation.file("mark");
    let evil = format!("#!/bin/sh\ntouch {}\n", mark.display());
    for (name, text) in [
        (".git/HEAD", "ref: refs/heads/main\n".to_owned()),
        (".git/refs/heads/.keep", String::new()),
        (".git/objects/.keep", String::new()),
        (".git/config", "[core]\nrepositoryformatversion = 0\nfsmonitor = ./evil\n".to_owned()),
        ("json/__init__.py", format!("open({:?}, 'w').close()\n", mark.display().to_string())),
        ("evil", evil.clone()),
        ("marker", evil),
    ] {
        std::fs::create_dir_all(workspace.join(name).parent().unwrap()).unwrap();
        std::fs::write(workspace.join(name), text).unwrap();
        std::fs::set_permissions(workspace.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    turn(&installation, &["--session", &session, "hello again"]);
    assert_eq!(directories().lines().count(), 2, "the hook ran in both turns");
    assert!(!mark.exists(), "something of the workspace ran with the server's rights");
}

#[test]
fn plugins_have_the_same_environment_and_import_nothing_from_where_they_run() {
    let installation = Installation::new().with_env("PATH", path_of_tests());
    let mark = installation.file("mark").display().to_string();
    installation.write("json/__init__.py", format!("open({mark:?}, 'w').close()\nraise ImportError\n"));
    let told = installation.file("told").display().to_string();
    let code = format!(
        "import json, os, sys\n\
         def register(ctx):\n    \
             told = {{'env': dict(os.environ), 'path': sys.path}}\n    \
             open({told:?}, 'w').write(json.dumps(told))\n"
    );
    installation.write("plugins/look/plugin.yaml", "name: look\nversion: 1.0\n");
    installation.write("plugins/look/__init__.py", code);
    installation.write("config.yaml", "plugins:\n  enabled: [look]\n");
    turn(&installation, &["--model", "demo/fast", "hello"]);
    let told: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(installation.file("told")).unwrap()).unwrap();
    assert!(!installation.file("mark").exists());
    assert_eq!(told["env"]["PYTHONSAFEPATH"], "1", "{told}");
    assert_eq!(told["env"]["GIT_CONFIG_KEY_0"], "core.fsmonitor", "{told}");
    let entries = told["path"].as_array().unwrap();
    assert!(!entries.contains(&json!("")) && !entries.contains(&json!(installation.home())), "{told}");
}
