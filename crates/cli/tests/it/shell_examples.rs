//! The ways in which shell hooks are commonly written, with the real binary: format, block, add context, log.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::hooks::script;
use crate::installation::{Finished, Installation};

const FORMAT: &str = r#"#!/usr/bin/env bash
# Formats a Python file that was just written.
told="$(cat -)"
file=$(echo "$told" | jq -r '.tool_input.path // empty')
[[ "$file" == *.py ]] && command -v black >/dev/null && black "$file" 2>/dev/null
printf '{}\n'
"#;
const REFUSE: &str = r#"#!/usr/bin/env bash
# Refuses to remove everything.
told="$(cat -)"
line=$(echo "$told" | jq -r '.tool_input.command // empty')
if echo "$line" | grep -qE 'rm[[:space:]]+-rf?[[:space:]]+/'; then
  printf '{"decision": "block", "reason": "refused: everything would be gone"}\n'
else
  printf '{}\n'
fi
"#;
const CHANGES: &str = r#"#!/usr/bin/env bash
# Says what has not been committed.
cat - >/dev/null
if changes=$(git status --porcelain 2>/dev/null) && [[ -n "$changes" ]]; then
  jq --null-input --arg c "$changes" '{context: ("Not committed yet:\n" + $c)}'
else
  printf '{}\n'
fi
"#;
const CHILDREN: &str = r#"#!/usr/bin/env bash
# Keeps a line for each subagent.
journal=~/.petasos/logs/children.log
jq -c '{at: now, parent: .session_id, extra: .extra}' < /dev/stdin >> "$journal"
printf '{}\n'
"#;
const CONFIG: &str = r#"
hooks_auto_accept: true
hooks:
  post_tool_call:
    - matcher: "write_file|patch"
      command: "~/.petasos/agent-hooks/format.sh"
  pre_tool_call:
    - matcher: "terminal"
      command: "~/.petasos/agent-hooks/refuse.sh"
      timeout: 5
  pre_llm_call:
    - command: "~/.petasos/agent-hooks/changes.sh"
  subagent_stop:
    - command: "~/.petasos/agent-hooks/children.sh"
"#;
const AGENT: &str = "name: Free\nmodel: demo/fast\ntools:\n  - type: agent_toolset\n    defaultConfig: {permissionPolicy: {type: always_allow}}\n";

/// An installation in `~/.petasos` of a user, whose directory is returned too.
fn installed() -> (Installation, TempDir) {
    let user = tempfile::tempdir().unwrap();
    let path = std::env::vars_os().find(|(name, _)| name == "PATH").unwrap().1.into_string().unwrap();
    let installation = Installation::new()
        .with_env("HOME", user.path().display().to_string())
        .with_env("PATH", format!("{}:{path}", user.path().join("bin").display()));
    std::os::unix::fs::symlink(installation.home(), user.path().join(".petasos")).unwrap();
    for (name, text) in
        [("format.sh", FORMAT), ("refuse.sh", REFUSE), ("changes.sh", CHANGES), ("children.sh", CHILDREN)]
    {
        script(&installation, name, "");
        // Written over, it keeps the right to run.
        installation.write(&format!("agent-hooks/{name}"), text);
    }
    installation.write("config.yaml", CONFIG);
    installation.write("agents/free.yaml", AGENT);
    (installation, user)
}

fn turn(installation: &Installation, arguments: &[&str]) -> Finished {
    let finished = installation.run(&[&["run"], arguments].concat());
    assert!(finished.success, "{finished:?}");
    finished
}

/// The file of this name somewhere below a directory.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => Some(path).filter(|path| path.ends_with(name)),
    })
}

#[test]
fn shell_hook_examples_work() {
    let (installation, user) = installed();
    std::fs::create_dir(user.path().join("bin")).unwrap();
    let black = user.path().join("bin/black");
    std::fs::write(&black, "#!/bin/sh\necho '# formatted' >> \"$1\"\n").unwrap();
    std::fs::set_permissions(&black, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    let write = r#"call write_file {"path": "a.py", "content": "x = 1\n"}"#;
    let said = turn(&installation, &["--json", "--agent", "free", write]);
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    let session = said["sessionId"].as_str().unwrap();
    let file = find(&installation.file("workspaces"), "a.py").unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x = 1\n# formatted\n");

    let refused = turn(&installation, &["--session", session, r#"call terminal {"command": "rm -rf /"}"#]);
    assert!(refused.stdout.contains("refused: everything would be gone"), "{refused:?}");

    let workspace = file.parent().unwrap();
    for (name, text) in
        [("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\nrepositoryformatversion = 0\n")]
    {
        for directory in ["refs/heads", "objects"] {
            std::fs::create_dir_all(workspace.join(".git").join(directory)).unwrap();
        }
        std::fs::write(workspace.join(".git").join(name), text).unwrap();
    }
    let told = turn(&installation, &["--session", session, "hello"]);
    assert!(told.stdout.contains("Not committed yet:\n?? a.py"), "{told:?}");

    turn(&installation, &["--session", session, "delegate look it up"]);
    let journal = std::fs::read_to_string(installation.file("logs/children.log")).unwrap();
    let line: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    assert_eq!((&line["parent"], &line["extra"]["child_status"]), (&session.into(), &"completed".into()));
}
