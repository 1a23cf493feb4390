//! Promises that hold for every script, with crashes anywhere.

use std::time::Duration;

use petasos_core::budget::AtBudget;
use petasos_core::conversation::{ConversationChange, Mode};
use petasos_core::event::*;
use petasos_core::limits::Limits;
use petasos_core::model::Stop;
use petasos_core::routine::OnToolError;
use petasos_core::settings::SessionSettings;
use petasos_core::step::{Input, Opening, UserEvent};
use proptest::prelude::*;
use serde_json::Map;

use crate::world::{AnswerSpec, CallSpec, OutputSpec, World};

#[derive(Debug, Clone)]
enum Op {
    Message,
    Run(OnToolError),
    RunTimesOut,
    Steer,
    Interrupt {
        said: bool,
    },
    InterruptAndMessage,
    Supersede,
    PersonMessage,
    PersonNote {
        opens_turn: bool,
    },
    Mode(Mode),
    DeleteEvents {
        back: u64,
    },
    Answer {
        pick: usize,
        allow: bool,
        scope: Scope,
    },
    AnswerTwo {
        allow: bool,
    },
    AnswerFor {
        pick: usize,
    },
    AnswerAllAndMessage {
        allow: bool,
    },
    Settings,
    StrayAnswer,
    TextBegins,
    LateText,
    Model(AnswerSpec),
    ModelFails,
    ModelRefusesLength,
    Compacted,
    LateCompaction,
    LateModel,
    /// Hooks put another text in place of what came from outside last.
    TransformResult,
    Tool {
        pick: usize,
        is_error: bool,
    },
    Deadline,
    Expire,
    GiveUp,
    Crash {
        from_checkpoint: bool,
    },
}

fn call(read_only: bool) -> BoxedStrategy<CallSpec> {
    let effect = if read_only {
        Just(ToolEffect::ReadOnly).boxed()
    } else {
        prop_oneof![Just(ToolEffect::ReadOnly), Just(ToolEffect::SideEffect)].boxed()
    };
    let common = prop_oneof![
        effect.clone().prop_map(CallSpec::Run),
        effect.prop_map(CallSpec::Ask),
        Just(CallSpec::Danger),
        Just(CallSpec::Refused),
        Just(CallSpec::Custom),
        Just(CallSpec::Clarify),
        Just(CallSpec::Secret),
        prop_oneof![Just(OutputSpec::Fits), Just(OutputSpec::Breaks), Just(OutputSpec::Unreadable)]
            .prop_map(CallSpec::Output),
    ];
    if read_only { common.boxed() } else { prop_oneof![5 => common, 1 => Just(CallSpec::Sudo)].boxed() }
}

fn answer(read_only: bool) -> impl Strategy<Value = AnswerSpec> {
    let stop = prop_oneof![
        8 => Just(Stop::EndTurn),
        1 => Just(Stop::MaxTokens),
        1 => Just(Stop::Refusal),
    ];
    (any::<bool>(), any::<bool>(), prop::collection::vec(call(read_only), 0..4), stop)
        .prop_map(|(text, thinking, calls, stop)| AnswerSpec { text, thinking, calls, stop })
}

fn op(read_only: bool) -> impl Strategy<Value = Op> {
    let scope = prop_oneof![Just(Scope::Once), Just(Scope::Session), Just(Scope::Always)];
    prop_oneof![
        4 => Just(Op::Message),
        2 => prop_oneof![Just(OnToolError::Continue), Just(OnToolError::Fail)].prop_map(Op::Run),
        1 => Just(Op::RunTimesOut),
        2 => Just(Op::Steer),
        1 => any::<bool>().prop_map(|said| Op::Interrupt { said }),
        1 => Just(Op::InterruptAndMessage),
        2 => Just(Op::Supersede),
        1 => Just(Op::PersonMessage),
        1 => any::<bool>().prop_map(|opens_turn| Op::PersonNote { opens_turn }),
        1 => prop_oneof![Just(Mode::Auto), Just(Mode::Manual)].prop_map(Op::Mode),
        1 => (0u64..12).prop_map(|back| Op::DeleteEvents { back }),
        6 => (0usize..4, any::<bool>(), scope).prop_map(|(pick, allow, scope)| Op::Answer { pick, allow, scope }),
        2 => any::<bool>().prop_map(|allow| Op::AnswerTwo { allow }),
        2 => (0usize..4).prop_map(|pick| Op::AnswerFor { pick }),
        2 => any::<bool>().prop_map(|allow| Op::AnswerAllAndMessage { allow }),
        1 => Just(Op::Settings),
        1 => Just(Op::StrayAnswer),
        4 => Just(Op::TextBegins),
        1 => Just(Op::LateText),
        8 => answer(read_only).prop_map(Op::Model),
        1 => Just(Op::ModelFails),
        1 => Just(Op::ModelRefusesLength),
        6 => Just(Op::Compacted),
        1 => Just(Op::LateCompaction),
        1 => Just(Op::LateModel),
        3 => Just(Op::TransformResult),
        6 => (0usize..4, any::<bool>()).prop_map(|(pick, is_error)| Op::Tool { pick, is_error }),
        1 => Just(Op::Deadline),
        1 => Just(Op::Expire),
        1 => Just(Op::GiveUp),
        3 => any::<bool>().prop_map(|from_checkpoint| Op::Crash { from_checkpoint }),
    ]
}

/// With little room for contexts, and with budgets that soon ask whether to go on.
fn limits(context_tokens: Option<u64>, asks: bool) -> Limits {
    let limits = Limits {
        context_tokens,
        // Whatever is waited for may be given up at once.
        action_time: Some(Duration::ZERO),
        ..Limits::default()
    };
    let budgets =
        Limits { turn_model_calls: 2, session_tokens: Some(100), at_budget: AtBudget::Pause, ..limits };
    if asks { budgets } else { limits }
}

fn interrupt() -> UserEvent {
    UserEvent::Interrupt(UserInterrupt { message: None })
}

fn message() -> UserEvent {
    UserEvent::Message(UserMessage::new(vec![Block::text("go on")]))
}

/// Applies one operation; what the session refuses must leave no trace.
fn apply(world: &mut World, op: &Op, crashes: bool) {
    let length = world.log.len();
    let refused = match op {
        Op::Message => world.message("hello").is_err(),
        Op::Run(on_tool_error) => world.run(*on_tool_error).is_err(),
        Op::RunTimesOut => {
            world.run_times_out();
            false
        }
        Op::Steer => world.user(UserEvent::Steer(UserSteer { message: "shorter".into() })).is_err(),
        Op::Interrupt { said } => {
            let said_so_far = if *said { "half a sent".to_owned() } else { String::new() };
            world
                .feed(Input::User { events: vec![interrupt()], said_so_far, opening: Opening::default() })
                .is_err()
        }
        Op::InterruptAndMessage => {
            let events = vec![interrupt(), message()];
            world
                .feed(Input::User { events, said_so_far: String::new(), opening: Opening::default() })
                .is_err()
        }
        Op::Supersede => {
            let content = vec![Block::text("no, this")];
            assert!(
                world.user(UserEvent::Supersede(UserMessage::new(content))).is_ok(),
                "it is always taken"
            );
            let waits = world.state.turn.as_ref().is_some_and(|turn| turn.opened_by <= length as u64);
            assert!(!waits, "nothing of an earlier turn is left");
            false
        }
        Op::PersonMessage => {
            let message = PersonMessage {
                text: "I am here".into(),
                author: Some("Ann".into()),
                author_id: None,
                metadata: Map::new(),
            };
            world.user(UserEvent::PersonMessage(message)).is_err()
        }
        Op::PersonNote { opens_turn } => {
            let note = PersonNote {
                text: "be brief".into(),
                author: None,
                opens_turn: *opens_turn,
                metadata: Map::new(),
            };
            world.user(UserEvent::PersonNote(note)).is_err()
        }
        Op::Mode(mode) => {
            let refused = world.user(UserEvent::Conversation(ConversationChange::mode(*mode))).is_err();
            assert!(
                *mode == Mode::Auto || world.state.turn.is_none(),
                "a person who takes over ends the turn"
            );
            refused
        }
        Op::DeleteEvents { back } => {
            let from = (length as u64).saturating_sub(*back).max(1);
            let refused = world.user(UserEvent::DeleteEvents(EventsDeleted { from })).is_err();
            assert!(length == 0 || world.state.turn.is_none(), "nothing goes on with what was deleted");
            refused
        }
        Op::Answer { pick, allow, scope } => match world.answer(*pick, *allow, *scope) {
            Some(answer) => world.user(answer).is_err(),
            None => false,
        },
        Op::AnswerTwo { allow } => {
            let answers = [0, 1].map(|pick| world.answer(pick, *allow, Scope::Once));
            // With one action pending both are the same answer, and the second makes the request invalid.
            let events: Vec<_> = answers.into_iter().flatten().collect();
            world
                .feed(Input::User { events, said_so_far: String::new(), opening: Opening::default() })
                .is_err()
        }
        Op::AnswerFor { pick } => match world.answer_for(*pick) {
            Some(answer) => world.user(answer).is_err(),
            None => false,
        },
        Op::AnswerAllAndMessage { allow } => {
            let count = world.state.pending().count();
            let answers = (0..count).filter_map(|pick| world.answer(pick, *allow, Scope::Once));
            let content = vec![Block::text("and hurry")];
            let joins = UserEvent::Message(UserMessage {
                place: MessagePlace::JoinsTurn,
                ..UserMessage::new(content)
            });
            let events: Vec<_> = answers.chain([joins]).collect();
            world
                .feed(Input::User { events, said_so_far: String::new(), opening: Opening::default() })
                .is_err()
        }
        Op::Settings => world.user(UserEvent::Settings(SessionSettings::default())).is_err(),
        Op::StrayAnswer => {
            let request_id = "clarify_nobody_asked".parse().unwrap();
            world.user(UserEvent::ClarifyResult(ClarifyResult { request_id, answer: "x".into() })).is_err()
        }
        Op::TextBegins => {
            world.text_begins();
            false
        }
        Op::LateText => {
            world.feed(Input::TextBegan { call: 9999 }).unwrap();
            assert_eq!(world.log.len(), length, "the text of a call that nobody waits for changes nothing");
            false
        }
        Op::Model(spec) => {
            world.model_answers(spec);
            false
        }
        Op::ModelFails => {
            world.model_fails();
            false
        }
        Op::ModelRefusesLength => {
            world.model_refuses_length();
            false
        }
        Op::Compacted => {
            world.compaction_ends();
            false
        }
        Op::LateCompaction => {
            let compacted = Compacted { through: 3, summary: "late".into(), ..Compacted::default() };
            let input = Input::CompactionFinished { call: 9999, compacted, summary_call: None };
            world.feed(input).unwrap();
            assert_eq!(world.log.len(), length, "a compaction that nobody waits for changes nothing");
            false
        }
        Op::LateModel => {
            let outcome = Err(Failure { code: "late".into(), message: "late".into() });
            world.feed(Input::ModelFinished { call: 9999, model: "m".into(), outcome }).unwrap();
            assert_eq!(world.log.len(), length, "a call that nobody waits for changes nothing");
            false
        }
        Op::TransformResult => {
            let tool_use_id = world.folded().results_from_outside().last().cloned();
            let tool_use_id = tool_use_id.unwrap_or_else(|| "ctoolu_unknown".to_owned());
            world.feed(Input::ResultTransformed { tool_use_id, text: "another".into() }).unwrap();
            false
        }
        Op::Tool { pick, is_error } => {
            world.tool_finishes(*pick, *is_error);
            false
        }
        Op::Deadline => {
            world.feed(Input::DeadlinePassed).unwrap();
            false
        }
        Op::Expire => {
            world.feed(Input::ActionsExpired).unwrap();
            false
        }
        Op::GiveUp => {
            world.feed(Input::GivenUp { message: "given up".into() }).unwrap();
            false
        }
        Op::Crash { from_checkpoint } => {
            if crashes {
                world.crash(*from_checkpoint);
            }
            false
        }
    };
    if refused {
        assert_eq!(world.log.len(), length, "a refused request leaves no trace");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_script_breaks_a_promise(
        ops in prop::collection::vec(op(false), 1..60),
        window in prop::option::of(10u64..80),
        asks in any::<bool>(),
        shows_typing in any::<bool>(),
    ) {
        let mut world = World::new();
        world.limits = limits(window, asks);
        world.shows_typing = shows_typing;
        for op in &ops {
            apply(&mut world, op, true);
        }
        world.drain();
        world.check_log();
        // Whatever happened, the session takes the next message.
        world.user(UserEvent::Conversation(ConversationChange::mode(Mode::Auto))).unwrap();
        prop_assert!(world.message("still there?").is_ok());
        world.drain();
        prop_assert_eq!(world.last_stop(), Some(&StopReason::end_turn()));
        world.check_log();
    }

    #[test]
    fn a_resumed_run_equals_an_uninterrupted_one(
        ops in prop::collection::vec(op(true), 1..60),
        window in prop::option::of(10u64..80),
        asks in any::<bool>(),
        shows_typing in any::<bool>(),
    ) {
        let (mut calm, mut crashing) = (World::new(), World::new());
        (calm.shows_typing, crashing.shows_typing) = (shows_typing, shows_typing);
        calm.limits = limits(window, asks);
        crashing.limits = limits(window, asks);
        for op in &ops {
            apply(&mut calm, op, false);
            apply(&mut crashing, op, true);
        }
        calm.drain();
        crashing.drain();
        prop_assert_eq!(&calm.log, &crashing.log);
        prop_assert_eq!(&calm.state, &crashing.state);
        prop_assert_eq!(calm.context(), crashing.context());
        prop_assert_eq!(calm.context(), calm.context_in_pieces());
    }
}
