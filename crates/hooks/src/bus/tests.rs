use std::future::pending;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::event::EventSet;

/// What a callback of a test does.
type Does = Box<dyn Fn(&Firing) -> Result<Answer, String> + Send + Sync>;

struct Fake {
    name: &'static str,
    does: Does,
    hangs: bool,
    on_failure: OnFailure,
}

impl Fake {
    fn says(value: Value) -> Self {
        Fake::does(move |_| Ok(Answer { value: value.clone(), ..Answer::default() }))
    }

    fn does(does: impl Fn(&Firing) -> Result<Answer, String> + Send + Sync + 'static) -> Self {
        Fake { name: "fake", does: Box::new(does), hangs: false, on_failure: OnFailure::GoOn }
    }
}

impl Callback for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn concerns(&self, _: &Firing) -> bool {
        true
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(Duration::from_millis(if self.hangs { 10 } else { 60_000 }))
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn runs_beside(&self) -> bool {
        false
    }

    fn call<'a>(&'a self, firing: &'a Firing) -> BoxFuture<'a, Result<Answer, String>> {
        async move { if self.hangs { pending().await } else { (self.does)(firing) } }.boxed()
    }
}

/// A source with the same callbacks for some events.
struct Fakes(EventSet, Vec<Arc<dyn Callback>>);

impl Source for Fakes {
    fn events(&self) -> EventSet {
        self.0
    }

    fn callbacks(&self, _: HookEvent) -> Vec<Arc<dyn Callback>> {
        self.1.clone()
    }
}

fn bus(fakes: Vec<Fake>) -> Bus {
    let callbacks = fakes.into_iter().map(|fake| Arc::new(fake) as Arc<dyn Callback>).collect();
    Bus::new(vec![Arc::new(Fakes(HookEvent::ALL.into_iter().collect(), callbacks))])
}

fn turn() -> TurnInfo {
    TurnInfo {
        tenant: petasos_core::ids::TenantId::default_tenant(),
        session_id: "session_1".parse().unwrap(),
        agent_id: "agent_1".parse().unwrap(),
        user_id: None,
        turn_id: "event_1".to_owned(),
        platform: "api".to_owned(),
        model: "demo/echo".to_owned(),
        workspace: PathBuf::new(),
    }
}

async fn blocked(bus: &Bus, input: &mut Map<String, Value>) -> Option<String> {
    bus.pre_tool_call(&turn(), ToolCall { tool_use_id: "toolu_1", tool: "terminal" }, input).await
}

async fn context_of(bus: &Bus) -> Option<String> {
    let start = TurnStart { user_message: "hello", history: &[], is_first_turn: true };
    bus.pre_llm_call(&turn(), start).await
}

#[tokio::test]
async fn a_bus_without_callbacks_wants_nothing() {
    let nothing = Bus::new(vec![Arc::new(Fakes(EventSet::default(), Vec::new()))]);
    assert!(nothing.is_empty() && !nothing.wants(HookEvent::PreToolCall));
    let some = Bus::new(vec![Arc::new(Fakes(EventSet::default().with(HookEvent::PreLlmCall), Vec::new()))]);
    assert!(!some.is_empty() && some.wants(HookEvent::PreLlmCall) && !some.wants(HookEvent::PreToolCall));
}

#[tokio::test]
async fn the_first_valid_block_wins_and_what_one_changes_the_next_sees() {
    let change = Fake::does(|_| {
        let input = json!({ "command": "changed" }).as_object().cloned();
        Ok(Answer { input, ..Answer::default() })
    });
    let look = Fake::does(|firing| {
        let message = firing.arguments["args"]["command"].clone();
        Ok(Answer { value: json!({ "action": "block", "message": message }), ..Answer::default() })
    });
    let bus = bus(vec![
        Fake::says(json!({ "action": "block", "message": "" })),
        Fake::says(json!({ "action": "block" })),
        Fake::says(json!("block")),
        change,
        look,
        Fake::says(json!({ "action": "block", "message": "too late" })),
    ]);
    let mut input = Map::new();
    assert_eq!(blocked(&bus, &mut input).await.as_deref(), Some("changed"));
    assert_eq!(input["command"], "changed");
}

#[tokio::test]
async fn contexts_are_joined_and_what_is_none_is_left_out() {
    let bus = bus(vec![
        Fake::says(json!({ "context": "one" })),
        Fake::says(json!("two")),
        Fake::says(json!("  ")),
        Fake::says(json!({ "context": null })),
        Fake::says(json!({ "context": ["three"] })),
        Fake::says(json!(7)),
    ]);
    assert_eq!(context_of(&bus).await.as_deref(), Some("one\n\ntwo\n\n[\"three\"]"));
}

#[tokio::test]
async fn transforms_are_chained() {
    let more = |name: &'static str, letter: char| {
        Fake::does(move |firing| {
            let text = firing.arguments[name].as_str().unwrap_or_default();
            Ok(Answer { value: format!("{text}{letter}").into(), ..Answer::default() })
        })
    };
    let result = ToolResult {
        tool_use_id: "toolu_1",
        tool: "terminal",
        input: &Map::new(),
        result: "a",
        duration_ms: 1,
    };
    let chained = bus(vec![more("result", 'b'), Fake::says(json!({ "context": "x" })), more("result", 'c')]);
    assert_eq!(chained.transform_tool_result(&turn(), result).await.as_deref(), Some("abc"));
    let output = TerminalOutput { command: "ls", output: "a", exit_code: 0, directory: "/" };
    let chained = bus(vec![more("output", 'b'), more("output", 'c')]);
    assert_eq!(chained.transform_terminal_output(&turn(), output).await.as_deref(), Some("abc"));
    let empty = bus(vec![Fake::says(json!(""))]);
    assert_eq!(empty.transform_tool_result(&turn(), result).await.as_deref(), Some(""));
    assert_eq!(empty.transform_llm_output(&turn(), "a").await, None);
}

#[tokio::test]
async fn whatever_a_callback_does_the_next_one_is_asked() {
    let faults = || {
        let hangs = Fake { hangs: true, ..Fake::says(Value::Null) };
        vec![
            Fake::does(|_| panic!("a callback of the test panics")),
            Fake::does(|_| Err("no".to_owned())),
            hangs,
        ]
    };
    let mut fakes = faults();
    fakes.push(Fake::says(json!("still there")));
    assert_eq!(context_of(&bus(fakes)).await.as_deref(), Some("still there"));
    for (fault, why) in faults().into_iter().zip(["a bug", "no", "had not answered"]) {
        let fault = Fake { on_failure: OnFailure::Block, ..fault };
        let told = blocked(&bus(vec![fault]), &mut Map::new()).await.unwrap_or_default();
        assert!(told.starts_with("hook fake failed closed: ") && told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn the_first_decision_about_a_message_wins() {
    let decided = |values: Vec<Value>| async move {
        bus(values.into_iter().map(Fake::says).collect()).pre_gateway_dispatch(Map::new()).await
    };
    let skip = json!({ "action": "skip", "reason": "ambient" });
    let skipped = Dispatch::Skip { reason: "ambient".to_owned() };
    assert_eq!(decided(vec![json!({ "action": "dance" }), skip.clone()]).await, skipped);
    let rewrite = json!({ "action": "rewrite", "text": "other" });
    assert_eq!(decided(vec![rewrite, skip.clone()]).await, Dispatch::Rewrite { text: "other".to_owned() });
    assert_eq!(decided(vec![json!({ "action": "rewrite" }), skip.clone()]).await, skipped);
    assert_eq!(decided(vec![json!({ "action": "allow" }), skip]).await, Dispatch::Allow);
    assert_eq!(decided(Vec::new()).await, Dispatch::Allow);
}
