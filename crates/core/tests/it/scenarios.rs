//! The flows that clients rely on, event by event.

use petasos_core::context::Context;
use petasos_core::event::*;
use petasos_core::ids::ThreadId;
use petasos_core::limits::Limits;
use petasos_core::model::{Message, Stop, Usage};
use petasos_core::state::CallKind;
use petasos_core::step::{CRASH_LOOP, Input, Opening, ReadOnlyCalls, Refusal, UserEvent};

use crate::world::{AnswerSpec, CallSpec, World, now};

fn says(text: bool, calls: &[CallSpec]) -> AnswerSpec {
    AnswerSpec { text, thinking: false, calls: calls.to_vec(), stop: Stop::EndTurn }
}

const RUN: CallSpec = CallSpec::Run(ToolEffect::SideEffect);
const ASK: CallSpec = CallSpec::Ask(ToolEffect::SideEffect);

#[test]
fn a_plain_turn() {
    let mut world = World::new();
    assert_eq!(
        world.message("Say hello").unwrap(),
        ["user.message", "session.status_running", "span.model_started"]
    );
    assert_eq!(
        world.model_answers(&says(true, &[])),
        ["span.model_finished", "agent.message", "session.titled", "session.status_idle"]
    );
    assert_eq!(world.last_stop(), Some(&StopReason::end_turn()));
    assert_eq!(world.state.view.title.as_deref(), Some("Say hello"));
    assert_eq!(world.state.view.usage.total(), 15);
}

#[test]
fn the_prompt_of_a_session_is_an_entry_of_its_log() {
    let mut world = World::new();
    let message = UserEvent::Message(UserMessage::new(vec![Block::text("hello")]));
    let opening = Opening { prompt: Some("You noted: tea.".to_owned()), customer: None };
    assert_eq!(
        world.feed(Input::User { events: vec![message], said_so_far: String::new(), opening }).unwrap(),
        ["user.message", "session.prompt_prepared", "session.status_running", "span.model_started"]
    );
    world.drain();
    world.message("again").unwrap();
    world.drain();
    let mut context = Context::default();
    world.log.iter().for_each(|event| context.apply(event));
    assert_eq!(context.system("Be kind."), "Be kind.\n\nYou noted: tea.");
    assert_eq!(context.system(""), "You noted: tea.");
    assert_eq!(Context::default().system("Be kind."), "Be kind.");
    world.check_log();
}

#[test]
fn a_custom_tool_pauses_the_turn_until_its_result() {
    let mut world = World::new();
    world.message("where is my order").unwrap();
    assert_eq!(
        world.model_answers(&says(false, &[CallSpec::Custom])),
        ["span.model_finished", "agent.custom_tool_use", "session.status_idle"]
    );
    let pending = world.state.turn.as_ref().unwrap().pending_ids();
    assert_eq!(
        world.last_stop(),
        Some(&StopReason::RequiresAction { event_ids: pending.clone(), expires_at: None })
    );
    let waits = Refusal::ActionRequired { turn_id: "evt_1_1".into(), pending: pending.clone() };
    assert_eq!(world.message("hello?"), Err(waits.clone()));
    let answer = world.answer(0, true, Scope::Once).unwrap();
    // A request is refused as a whole, so what it would have changed does not count.
    let message = UserEvent::Message(UserMessage::new(vec![Block::text("and now?")]));
    assert_eq!(world.users(vec![answer.clone(), message]), Err(waits));
    let twice = Refusal::SettledTwice { id: pending[0].clone(), pending };
    assert_eq!(world.users(vec![answer.clone(), answer.clone()]), Err(twice));
    assert_eq!(
        world.user(answer).unwrap(),
        ["user.custom_tool_result", "session.status_running", "span.model_started"]
    );
    world.drain();
    world.check_log();
}

#[test]
fn free_tools_run_first_and_asked_ones_start_together() {
    let mut world = World::new();
    world.message("do").unwrap();
    let types = world.model_answers(&says(true, &[RUN, ASK, ASK]));
    assert_eq!(&types[2..], ["agent.mcp_tool_use", "agent.tool_use", "agent.mcp_tool_use", "tool.started"]);
    assert_eq!(world.message("x"), Err(Refusal::TurnInProgress { turn_id: "evt_1_1".into() }));
    assert_eq!(world.tool_finishes(0, false), ["agent.mcp_tool_result", "session.status_idle"]);
    // A partial answer says what is still open, and starts nothing.
    let deny = world.answer(0, false, Scope::Once).unwrap();
    assert_eq!(world.user(deny.clone()).unwrap(), ["user.tool_confirmation", "session.status_idle"]);
    assert!(matches!(world.user(deny), Err(Refusal::NotPending { pending, .. }) if pending.len() == 1));
    let allow = world.answer(0, true, Scope::Once).unwrap();
    assert_eq!(
        world.user(allow).unwrap(),
        ["user.tool_confirmation", "session.status_running", "agent.tool_result", "tool.started"]
    );
    assert_eq!(world.tool_finishes(0, false), ["agent.mcp_tool_result", "span.model_started"]);
}

#[test]
fn a_session_grant_silences_the_next_question() {
    let mut world = World::new();
    world.message("do").unwrap();
    world.model_answers(&says(false, &[ASK]));
    let allow = world.answer(0, true, Scope::Session).unwrap();
    world.user(allow).unwrap();
    world.tool_finishes(0, false);
    let types = world.model_answers(&says(false, &[ASK]));
    assert_eq!(types, ["span.model_finished", "agent.tool_use", "tool.started"]);
}

#[test]
fn a_danger_is_allowed_by_its_name_and_not_with_its_tool() {
    let mut world = World::new();
    world.message("do").unwrap();
    for (call, asks) in [(ASK, true), (CallSpec::Danger, true), (CallSpec::Danger, false), (ASK, false)] {
        let types = world.model_answers(&says(false, &[call]));
        assert_eq!(types.contains(&"session.status_idle"), asks, "{types:?}");
        if asks {
            let allow = world.answer(0, true, Scope::Session).unwrap();
            world.user(allow).unwrap();
        }
        world.tool_finishes(0, false);
    }
    let granted: Vec<&str> = world.state.allowed_tools.iter().map(String::as_str).collect();
    assert_eq!(granted, ["danger:rm", "work"]);
}

#[test]
fn answers_of_older_logs_allow_what_they_name() {
    let danger: Danger = serde_json::from_str(r#"{"pattern_key":"rm","description":"removes"}"#).unwrap();
    assert_eq!(danger.grants().collect::<Vec<_>>(), ["danger:rm"]);
    let answer = r#"{"tool_use_id":"toolu_1","result":"allow","scope":"session","tool":"danger:rm"}"#;
    let answer: ToolConfirmation = serde_json::from_str(answer).unwrap();
    assert_eq!(answer.grants().collect::<Vec<_>>(), ["danger:rm"]);
}

#[test]
fn a_call_tells_and_hears_each_of_its_subagents_once() {
    let mut world = World::new();
    world.message("do").unwrap();
    world.model_answers(&says(false, &[CallSpec::Run(ToolEffect::ReadOnly)]));
    let tool_use_id = world.running_tools().remove(0);
    let spent = ThreadUsage { usage: Usage { input_tokens: 7, ..Usage::default() }, model_calls: 2 };
    let message = |spent| ThreadMessage {
        thread_id: ThreadId::for_call(&tool_use_id.parse().unwrap(), 0),
        content: vec![Block::text("Count.")],
        tool_use_id: Some(tool_use_id.parse().unwrap()),
        spent,
    };
    let sent = || Input::ThreadSent { tool_use_id: tool_use_id.clone(), message: message(None) };
    let received =
        || Input::ThreadReceived { tool_use_id: tool_use_id.clone(), message: message(Some(spent)) };
    let nothing: [&str; 0] = [];
    assert_eq!(world.feed(received()).unwrap(), nothing);
    assert_eq!(world.feed(sent()).unwrap(), ["agent.thread_message_sent"]);
    world.crash(true);
    assert_eq!(world.feed(sent()).unwrap(), nothing);
    assert_eq!(world.feed(received()).unwrap(), ["agent.thread_message_received"]);
    assert_eq!(world.feed(received()).unwrap(), nothing);
    assert_eq!((world.state.view.usage.input_tokens, world.state.view.model_calls), (10 + 7, 1 + 2));
    assert_eq!(world.running_tools(), [tool_use_id.as_str()]);
    world.tool_finishes(0, false);
    assert_eq!(world.feed(sent()).unwrap(), nothing);
}

#[test]
fn an_answer_of_the_wrong_kind_names_the_right_one() {
    let mut world = World::new();
    world.message("ask").unwrap();
    world.model_answers(&says(false, &[CallSpec::Clarify]));
    let id = world.state.turn.as_ref().unwrap().pending_ids().remove(0);
    let wrong = UserEvent::SecretResult(RequestAnswered { request_id: id.parse().unwrap() });
    let refusal = world.user(wrong).unwrap_err();
    assert!(refusal.to_string().ends_with("is answered by user.clarify_result, not by user.secret_result"));
}

#[test]
fn an_interrupt_keeps_what_was_said_and_closes_calls() {
    let mut world = World::new();
    world.message("write").unwrap();
    let interrupt = || UserEvent::Interrupt(UserInterrupt { message: Some("stop".into()) });
    let types = world
        .feed(Input::User {
            events: vec![interrupt()],
            said_so_far: "Once upon".into(),
            opening: Opening::default(),
        })
        .unwrap();
    assert_eq!(types, ["user.interrupt", "span.model_finished", "agent.message", "session.status_idle"]);
    assert_eq!(world.last_stop(), Some(&StopReason::EndTurn { reason: None, interrupted: true }));

    world.message("again").unwrap();
    world.model_answers(&says(false, &[RUN, CallSpec::Custom]));
    assert_eq!(
        world.user(interrupt()).unwrap(),
        ["user.interrupt", "agent.mcp_tool_result", "session.status_idle"]
    );
    assert!(world.pending_kinds().is_empty());
    world.check_log();

    assert_eq!(world.user(interrupt()).unwrap(), ["user.interrupt"], "with nothing to stop, nothing happens");
    world.check_log();
}

#[test]
fn a_new_turn_never_takes_over_the_model_call_of_the_last() {
    let mut world = World::new();
    world.message("old").unwrap();
    let old = world.in_flight.clone();
    let interrupt = UserEvent::Interrupt(UserInterrupt { message: None });
    let message = UserEvent::Message(UserMessage::new(vec![Block::text("new")]));
    world
        .feed(Input::User {
            events: vec![interrupt, message],
            said_so_far: String::new(),
            opening: Opening::default(),
        })
        .unwrap();
    assert_eq!(world.model_call(), Some(1));
    assert!(!old.contains(&world.in_flight[0]));
}

#[test]
fn steering_joins_the_next_model_call_even_a_further_one() {
    let mut world = World::new();
    let steer = || UserEvent::Steer(UserSteer { message: "be brief".into() });
    world.user(steer()).unwrap();
    world.message("go").unwrap();
    assert!(world.state.steers.is_empty());
    world.user(steer()).unwrap();
    assert_eq!(
        world.model_answers(&says(true, &[])),
        ["span.model_finished", "agent.message", "span.model_started"]
    );
    let messages = world.context();
    assert!(
        matches!(messages.last(), Some(Message::User(content)) if joined_text(content).contains("be brief"))
    );
    world.drain();
    world.check_log();
}

#[test]
fn a_crash_during_a_side_effect_tells_the_model_so() {
    let mut world = World::new();
    world.message("do").unwrap();
    world.model_answers(&says(false, &[RUN, CallSpec::Run(ToolEffect::ReadOnly), CallSpec::Custom]));
    assert_eq!(world.running_tools().len(), 2);
    world.crash(false);
    assert_eq!(world.running_tools().len(), 1, "only the read-only tool runs again");
    let unknown = |event: &petasos_core::Event| match &event.payload {
        Payload::McpToolResult(result) => joined_text(&result.content).contains("outcome is unknown"),
        _ => false,
    };
    assert_eq!(world.log.iter().filter(|event| unknown(event)).count(), 1);
    world.tool_finishes(0, false);
    assert_eq!(world.pending_kinds(), [CallKind::Custom]);
    world.drain();
    world.check_log();
}

#[test]
fn a_read_only_call_that_is_set_aside_is_not_made_again() {
    let mut world = World::new();
    world.message("do").unwrap();
    world.model_answers(&says(
        false,
        &[CallSpec::Run(ToolEffect::ReadOnly), CallSpec::Run(ToolEffect::ReadOnly)],
    ));
    assert_eq!(world.running_tools().len(), 2);
    world.crash(false);
    assert_eq!(world.running_tools().len(), 2);
    let recover = Input::Recover { passwords: Vec::new(), read_only_calls: ReadOnlyCalls::SetAside };
    world.feed(recover).unwrap();
    assert_eq!(world.running_tools().len(), 0);
    let unknown = |event: &petasos_core::Event| match &event.payload {
        Payload::ToolResult(result) | Payload::McpToolResult(result) => {
            joined_text(&result.content).contains("outcome is unknown")
        }
        _ => false,
    };
    assert_eq!(world.log.iter().filter(|event| unknown(event)).count(), 2);
    world.drain();
    world.check_log();
}

#[test]
fn a_turn_that_is_given_up_ends_with_an_error() {
    let mut world = World::new();
    world.message("do").unwrap();
    world.feed(Input::GivenUp { message: "It kills the server.".into() }).unwrap();
    let stop = world.state.view.stop_reason.clone();
    assert!(matches!(stop, Some(StopReason::Error { code, .. }) if code == CRASH_LOOP));
    world.message("once more").unwrap();
    world.drain();
    world.check_log();
}

#[test]
fn limits_stop_a_runaway_with_a_reason() {
    let stop_code = |limits: Limits, turns: usize| {
        let mut world = World::new();
        world.limits = limits;
        for _ in 0..turns {
            world.message("loop").unwrap();
            for _ in 0..10 {
                world.model_answers(&says(false, &[RUN]));
                world.tool_finishes(0, false);
            }
            world.drain();
        }
        match world.last_stop() {
            Some(StopReason::Error { code, .. }) => code.clone(),
            other => panic!("{other:?}"),
        }
    };
    let limits = Limits::default();
    assert_eq!(stop_code(Limits { turn_model_calls: 3, ..limits }, 1), "turn_model_calls_exceeded");
    assert_eq!(stop_code(Limits { turn_tokens: 40, ..limits }, 1), "turn_tokens_exceeded");
    assert_eq!(stop_code(Limits { session_tokens: Some(100), ..limits }, 2), "session_budget_exceeded");
}

#[test]
fn cut_answers_end_the_turn_with_the_reason() {
    let mut world = World::new();
    world.message("go").unwrap();
    // Calls go on where the answer was cut, three times in a row.
    let spec = AnswerSpec { stop: Stop::MaxTokens, ..says(true, &[RUN]) };
    for _ in 0..3 {
        assert_eq!(world.last_stop(), None);
        world.model_answers(&spec);
        world.tool_finishes(0, false);
    }
    assert_eq!(
        world.last_stop(),
        Some(&StopReason::EndTurn { reason: Some(CutShort::MaxTokens), interrupted: false })
    );
    world.check_log();
}

#[test]
fn an_archived_session_takes_nothing() {
    let mut world = World::new();
    world.message("go").unwrap();
    assert_eq!(world.feed(Input::Archive).unwrap(), ["session.status_idle", "session.archived"]);
    assert_eq!(world.message("hello"), Err(Refusal::Archived));
    assert!(world.feed(Input::Archive).unwrap().is_empty());
}

#[test]
fn all_calls_of_an_answer_come_before_any_result() {
    let mut world = World::new();
    world.message("go").unwrap();
    let calls = vec![CallSpec::Refused, CallSpec::Run(ToolEffect::ReadOnly), CallSpec::Custom];
    let types = world.model_answers(&AnswerSpec { text: false, thinking: false, calls, stop: Stop::ToolUse });
    let uses = types.iter().rposition(|name| name.ends_with("tool_use")).unwrap();
    let result = types.iter().position(|name| name.ends_with("tool_result")).unwrap();
    assert!(uses < result, "{types:?}");
}

#[test]
fn a_message_with_the_answers_is_read_after_the_results() {
    let mut world = World::new();
    world.message("go").unwrap();
    let calls = vec![CallSpec::Ask(ToolEffect::ReadOnly)];
    world.model_answers(&AnswerSpec { text: false, thinking: false, calls, stop: Stop::ToolUse });
    let joins =
        |place| UserEvent::Message(UserMessage { place, ..UserMessage::new(vec![Block::text("hurry")]) });
    let refused = world.user(joins(MessagePlace::JoinsTurn));
    assert!(matches!(refused, Err(Refusal::ActionRequired { .. })), "{refused:?}");
    let events = vec![world.answer(0, true, Scope::Once).unwrap(), joins(MessagePlace::JoinsTurn)];
    world.users(events).unwrap();
    world.tool_finishes(0, false);
    let messages = world.context();
    assert!(matches!(messages[2], Message::ToolResults(_)), "{messages:?}");
    assert_eq!(messages[3], Message::User(vec![Block::text("hurry")]));
    world.drain();
    world.check_log();
    // Without a turn there is nothing to join.
    world.user(joins(MessagePlace::JoinsTurn)).unwrap();
    assert!(world.state.turn.is_some());
}

#[test]
fn seeded_messages_open_no_turn_and_are_read_as_they_were_written() {
    let said = |text: &str| Payload::AgentMessage(AgentMessage { text: text.into() });
    let seeded = UserMessage { place: MessagePlace::Seeded, ..UserMessage::new(vec![Block::text("hi")]) };
    let system = SystemMessage { text: "Be a pirate.".into() };
    let payloads = [
        Payload::SystemMessage(system),
        Payload::UserMessage(seeded),
        Payload::MessageSeeded {},
        said("one"),
        Payload::MessageSeeded {},
        said("two"),
    ];
    let mut world = World::new();
    let mut context = Context::default();
    for (sequence, payload) in (1..).zip(payloads) {
        let session_id = world.state.session_id.clone();
        let event = Event { session_id, sequence, created_at: now(), processed_at: Some(now()), payload };
        world.state.apply(&event);
        context.apply(&event);
    }
    assert_eq!(world.state.turn, None);
    assert_eq!(context.messages().len(), 3);
    assert_eq!(context.system("Be brief."), "Be brief.\n\nBe a pirate.");
}
