//! A server with hooks that are real scripts.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use petasos_hooks::{Bus, ConfiguredHook, ConfiguredHooks, Place, Reach, Source, Specs};
use petasos_net::{Client, Egress, Guard, Options};
use petasos_sandbox::{Backend, Sandbox, Settings, Supervisor};
use petasos_testkit::{Frame, Reply, Setup, TestServer, within};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Scripts, and what they write.
pub(super) struct Scripts {
    directory: TempDir,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Scripts { directory: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a shell script. `$HERE` is the directory that this can look into.
    pub(super) fn script(&self, name: &str, body: &str) -> String {
        let path = self.path().join(name);
        let here = self.path().display();
        std::fs::write(&path, format!("#!/bin/sh\nHERE={here}\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// A script that appends its input to a file, a line for each firing.
    pub(super) fn recorder(&self, name: &str) -> String {
        self.script(&format!("{name}.sh"), &format!("cat >> $HERE/{name}.jsonl; echo >> $HERE/{name}.jsonl"))
    }

    /// What a recorder has seen.
    pub(super) fn recorded(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().join(format!("{name}.jsonl"))).unwrap_or_default();
        // Not line by line: recorders that run at the same time may put theirs into one. The last may be being written.
        serde_json::Deserializer::from_str(&text).into_iter().map_while(Result::ok).collect()
    }

    /// Waits until a recorder has seen this many firings.
    pub(super) async fn wait_for(&self, name: &str, count: usize) -> Vec<Value> {
        self.until(&format!("{count} of {name}"), || {
            Some(self.recorded(name)).filter(|all| all.len() >= count)
        })
        .await
    }

    /// Waits until a file is there.
    pub(super) async fn file(&self, name: &str) -> String {
        let path = self.path().join(name);
        self.until(name, || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))).await
    }

    async fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        within(what, async {
            loop {
                if let Some(found) = look() {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    /// Makes a pipe that scripts wait at: `read x < $HERE/name`.
    pub(super) fn gate(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path
    }

    /// Lets one script through a gate.
    pub(super) async fn open(&self, gate: &Path) {
        let gate = gate.to_owned();
        let opened = tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n"));
        within("the gate", opened).await.unwrap().unwrap();
    }

    /// The hooks of a configuration, alone on a bus.
    pub(super) fn hooks(&self, block: &Value) -> Arc<Bus> {
        Arc::new(Bus::new(vec![self.source(block)]))
    }

    /// The hooks of a configuration.
    pub(super) fn source(&self, block: &Value) -> Arc<dyn Source> {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent"), ("MARK", "inherited")];
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let specs = Specs::read(block, &env);
        assert_eq!(specs.warnings, [""; 0]);
        let place = Place { env, directory: self.path().to_owned(), scripts: "/".into() };
        let settings = Settings { backend: Backend::Unconfined, ..Settings::default() };
        let sandbox = Sandbox::new(settings, Supervisor::of_tests());
        let guard =
            Guard::new(Egress { allow: vec!["127.0.0.0/8".parse().unwrap()], only_hosts: Vec::new() });
        let client = Client::guarded(&Options::default(), guard);
        let reach = Arc::new(Reach { place, sandbox, client });
        let hooks =
            specs.hooks.into_iter().map(|hook| ConfiguredHook::new(hook, Arc::clone(&reach)).unwrap());
        Arc::new(ConfiguredHooks::new(hooks.collect(), specs.missing))
    }

    /// A server with these hooks.
    pub(super) async fn server(&self, block: Value) -> TestServer {
        TestServer::start_with(Setup { hooks: self.hooks(&block), ..Setup::default() }).await
    }
}

/// A session whose agent may use every tool without asking.
pub(super) async fn free_session(server: &TestServer) -> String {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    server.client.session(&agent).await
}

/// A model that runs a command and then says so.
pub(super) fn runs(command: &str) -> [Reply; 2] {
    [Reply::tool_call("terminal", json!({ "command": command })), Reply::text("Done.")]
}

/// Says something and waits for the end of the turn.
pub(super) async fn turn(server: &TestServer, session: &str, text: &str) -> Vec<Frame> {
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, text).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    frames
}

/// The result of the turn's only tool call, and whether it failed.
pub(super) fn result(frames: &[Frame]) -> (String, bool) {
    let found = frames.iter().filter(|frame| frame.event == "agent.tool_result");
    let [frame] = found.collect::<Vec<_>>()[..] else { panic!("one result is expected") };
    let payload = &frame.data["payload"];
    let is_error = payload["is_error"].as_bool().unwrap_or_default();
    (payload["content"][0]["text"].as_str().unwrap().to_owned(), is_error)
}
