//! How runs of routines begin and end, event by event.

use petasos_core::context::Context;
use petasos_core::event::*;
use petasos_core::model::{Message, Stop};
use petasos_core::routine::OnToolError;
use petasos_core::run::{RunErrorCode, RunOutcome};
use petasos_core::step::{Input, Refusal, UserEvent};

use crate::world::{AnswerSpec, CallSpec, OutputSpec, World};

const TOOL: CallSpec = CallSpec::Run(ToolEffect::SideEffect);
const FITS: CallSpec = CallSpec::Output(OutputSpec::Fits);

fn calls(calls: &[CallSpec]) -> AnswerSpec {
    AnswerSpec { text: false, thinking: false, calls: calls.to_vec(), stop: Stop::EndTurn }
}

fn started(on_tool_error: OnToolError) -> World {
    let mut world = World::new();
    world.run(on_tool_error).unwrap();
    world
}

/// The code of a run that failed; none of one that succeeded.
fn code(world: &World) -> Option<RunErrorCode> {
    world.check_log();
    let run_id = world.last_run().unwrap();
    match world.outcomes(&run_id)[0] {
        RunOutcome::Succeeded { .. } => None,
        RunOutcome::Failed { error } => Some(error.code),
    }
}

#[test]
fn output_settles_the_run_and_ends_its_turn() {
    let mut world = World::new();
    assert_eq!(
        world.run(OnToolError::Continue).unwrap(),
        ["user.message", "run.opened", "session.status_running", "span.model_started"]
    );
    // What was called beside it does not run any more.
    let appended = world.model_answers(&calls(&[TOOL, FITS, FITS]));
    assert_eq!(
        appended[..6],
        [
            "span.model_finished",
            "agent.tool_use",
            "agent.tool_use",
            "agent.tool_use",
            "agent.tool_result",
            "run.settled"
        ]
    );
    assert_eq!(appended.last(), Some(&"session.status_idle"));
    assert_eq!(code(&world), None);
    assert_eq!(world.last_stop(), Some(&StopReason::end_turn()));
    assert!(world.starts.is_empty());
}

#[test]
fn an_answer_without_a_call_is_reminded_until_the_calls_are_used_up() {
    let mut world = started(OnToolError::Continue);
    let text = AnswerSpec { text: true, ..calls(&[]) };
    for _ in 0..3 {
        assert_eq!(
            world.model_answers(&text),
            ["span.model_finished", "agent.message", "run.reminded", "span.model_started"]
        );
    }
    let messages = world.context();
    assert!(matches!(messages.last(), Some(Message::User(_))));
    world.model_answers(&text);
    assert_eq!(code(&world), Some(RunErrorCode::MaxEngineIterationsReached));
}

#[test]
fn output_that_cannot_be_read_may_be_corrected_and_output_that_does_not_fit_may_not() {
    let mut world = started(OnToolError::Fail);
    world.model_answers(&calls(&[CallSpec::Output(OutputSpec::Unreadable)]));
    assert!(world.model_call().is_some());
    world.model_answers(&calls(&[FITS]));
    assert_eq!(code(&world), None);
    let mut world = started(OnToolError::Continue);
    world.model_answers(&calls(&[CallSpec::Output(OutputSpec::Breaks)]));
    assert_eq!(code(&world), Some(RunErrorCode::OutputValidationFailed));
}

#[test]
fn a_tool_that_fails_fails_the_run_if_the_routine_says_so() {
    for (on_tool_error, expected) in
        [(OnToolError::Continue, None), (OnToolError::Fail, Some(RunErrorCode::ToolError))]
    {
        let mut world = started(on_tool_error);
        world.model_answers(&calls(&[TOOL, TOOL]));
        world.tool_finishes(0, true);
        if expected.is_none() {
            world.tool_finishes(0, false);
            world.model_answers(&calls(&[FITS]));
        }
        assert_eq!(code(&world), expected);
    }
}

#[test]
fn the_first_settlement_wins() {
    let mut world = started(OnToolError::Continue);
    let call = world.model_call().unwrap();
    world.run_times_out();
    assert_eq!(world.run_times_out(), Vec::<&str>::new());
    let late = Input::ModelFinished {
        call,
        model: "m".into(),
        outcome: Err(Failure { code: "x".into(), message: "x".into() }),
    };
    assert_eq!(world.feed(late).unwrap(), Vec::<&str>::new());
    assert_eq!(code(&world), Some(RunErrorCode::Timeout));
    assert!(matches!(world.last_stop(), Some(StopReason::Error { code, .. }) if code == "timeout"));
}

#[test]
fn a_model_that_fails_and_a_user_who_interrupts_are_engine_errors() {
    let mut world = started(OnToolError::Continue);
    world.model_fails();
    assert_eq!(code(&world), Some(RunErrorCode::EngineError));
    let mut world = started(OnToolError::Continue);
    world.user(UserEvent::Interrupt(UserInterrupt { message: None })).unwrap();
    assert_eq!(code(&world), Some(RunErrorCode::EngineError));
    assert_eq!(world.last_stop(), Some(&StopReason::EndTurn { reason: None, interrupted: true }));
}

#[test]
fn a_busy_session_takes_no_run() {
    let mut world = World::new();
    world.message("hello").unwrap();
    assert!(matches!(world.run(OnToolError::Continue), Err(Refusal::TurnInProgress { .. })));
    world.drain();
    assert!(world.run(OnToolError::Continue).is_ok());
}

#[test]
fn the_model_reads_what_the_routine_is_about_as_long_as_the_run_lasts() {
    let mut world = started(OnToolError::Continue);
    let system = |world: &World| {
        let mut context = Context::default();
        world.log.iter().for_each(|event| context.apply(event));
        context.system("Be kind.")
    };
    assert!(system(&world).starts_with("Be kind.\n\nDecide.\n\n"), "{}", system(&world));
    world.model_answers(&calls(&[FITS]));
    assert_eq!(system(&world), "Be kind.");
}
