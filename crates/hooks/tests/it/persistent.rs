//! Commands that run on: who is asked again when one ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use petasos_hooks::{ConfiguredHook, HookEvent, Place, Reach, Specs, synthetic};
use petasos_net::{Client, Options};
use petasos_sandbox::{Backend, Sandbox, Settings, Supervisor};
use petasos_testkit::within;
use serde_json::{Map, json};
use tempfile::TempDir;

/// Answers, until it is to crash, or to leave when it has answered before; it writes these two down.
const ENDS: &str = r#"
while read -r line; do
  case "$line" in
    *crash*) echo crash >> "$HERE/told"; exit 1 ;;
    *leave*) echo leave >> "$HERE/told"; [ -n "$answered" ] && exit 0 ;;
  esac
  answered=yes
  echo '{}'
done"#;

struct World {
    home: TempDir,
    hook: ConfiguredHook,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("hook.sh");
        std::fs::write(&script, ENDS).unwrap();
        let variables = [("PATH", "/usr/bin:/bin"), ("HERE", home.path().to_str().unwrap())];
        let env: BTreeMap<_, _> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let command = format!("sh {}", script.display());
        let block = json!({ "pre_tool_call": [{ "command": command, "persistent": true }] });
        let mut specs = Specs::read(&block, &env);
        let settings = Settings { backend: Backend::Unconfined, ..Settings::default() };
        let reach = Reach {
            place: Place { env, directory: home.path().to_owned(), scripts: "/".into() },
            sandbox: Sandbox::new(settings, Supervisor::of_tests()),
            client: Client::new(&Options::default()),
        };
        let hook = ConfiguredHook::new(specs.hooks.remove(0), Arc::new(reach)).unwrap();
        World { home, hook }
    }

    /// What the hook answers about a tool.
    async fn ask(&self, tool: &str) -> Result<String, String> {
        let firing = synthetic::firing(HookEvent::PreToolCall, Some(tool), Map::new());
        within("the answer", self.hook.exchange(&firing))
            .await
            .map(|exchange| exchange.stdout)
            .map_err(|failure| failure.to_string())
    }

    fn told(&self) -> String {
        std::fs::read_to_string(self.home.path().join("told")).unwrap()
    }
}

#[tokio::test]
async fn one_that_crashes_on_a_payload_is_not_made_to_take_it_twice() {
    let world = World::new();
    assert_eq!(world.ask("fine").await.as_deref(), Ok("{}\n"));
    assert_eq!(world.ask("crash").await, Err("it ended before it answered".to_owned()));
    assert_eq!(world.told(), "crash\n");
    assert_eq!(world.ask("fine").await.as_deref(), Ok("{}\n"), "another one takes over");
}

#[tokio::test]
async fn another_is_asked_when_one_leaves_in_order_just_then() {
    let world = World::new();
    assert_eq!(world.ask("fine").await.as_deref(), Ok("{}\n"));
    assert_eq!(world.ask("leave").await.as_deref(), Ok("{}\n"));
    assert_eq!(world.told(), "leave\nleave\n");
}
