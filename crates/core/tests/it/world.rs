//! A driver without I/O: keeps a log, carries out effects when told to, and can crash.

use std::collections::BTreeMap;

use jiff::Timestamp;
use petasos_core::amendments::Amendments;
use petasos_core::compaction::{Budget, Plan, plan};
use petasos_core::context::Context;
use petasos_core::event::*;
use petasos_core::ids::{RequestId, RunId, ToolUseId};
use petasos_core::limits::Limits;
use petasos_core::model::{AssistantPart, Message, Stop, Usage};
use petasos_core::routine::OnToolError;
use petasos_core::run::{RunError, RunErrorCode, RunJob, RunOutcome};
use petasos_core::session::SessionView;
use petasos_core::state::{ActionKind, CallKind, PendingAction};
use petasos_core::step::*;
use petasos_core::{Event, State};
use serde_json::Map;
use uuid::Uuid;

#[derive(Debug, Clone, Copy)]
pub(crate) enum CallSpec {
    Run(ToolEffect),
    Ask(ToolEffect),
    Danger,
    Refused,
    Custom,
    Clarify,
    Secret,
    Sudo,
    Output(OutputSpec),
}

/// What a call of `emit_output` hands in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputSpec {
    Fits,
    Breaks,
    Unreadable,
}

#[derive(Debug, Clone)]
pub(crate) struct AnswerSpec {
    pub(crate) text: bool,
    pub(crate) thinking: bool,
    pub(crate) calls: Vec<CallSpec>,
    pub(crate) stop: Stop,
}

pub(crate) struct World {
    pub(crate) log: Vec<Event>,
    pub(crate) state: State,
    pub(crate) limits: Limits,
    pub(crate) in_flight: Vec<Effect>,
    pub(crate) starts: BTreeMap<String, u32>,
    /// Whether replies are announced by `session.typing`, as in conversations.
    pub(crate) shows_typing: bool,
    next_uuid: u128,
}

pub(crate) fn now() -> Timestamp {
    "2026-06-20T23:28:02.772Z".parse().unwrap()
}

fn empty_state() -> State {
    State::new("session_1".parse().unwrap(), SessionView::new(now(), None, Map::new()))
}

impl World {
    pub(crate) fn new() -> Self {
        World {
            log: Vec::new(),
            state: empty_state(),
            limits: Limits::default(),
            in_flight: Vec::new(),
            starts: BTreeMap::new(),
            shows_typing: false,
            next_uuid: 0,
        }
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        self.next_uuid += 1;
        Uuid::from_u128(self.next_uuid)
    }

    /// Feeds one input, appends what comes of it, and starts what the new state wants.
    pub(crate) fn feed(&mut self, input: Input) -> Result<Vec<&'static str>, Refusal> {
        let before = self.state.clone();
        let events = step(&self.state, input, &self.limits, now());
        assert_eq!(self.state, before);
        let events = events?;
        for event in &events {
            assert_eq!(event.sequence, self.log.len() as u64 + 1, "sequences have no gap");
            self.state.apply(event);
            self.log.push(event.clone());
        }
        self.reconcile();
        self.check_not_wedged();
        Ok(events.iter().map(|event| event.payload.type_name()).collect())
    }

    fn reconcile(&mut self) {
        let wanted = effects(&self.state, &self.limits);
        for effect in &wanted {
            if self.in_flight.contains(effect) {
                continue;
            }
            if let Effect::RunTool(call) = effect {
                let starts = self.starts.entry(call.id.clone()).or_default();
                *starts += 1;
                assert!(
                    *starts == 1 || call.effect == ToolEffect::ReadOnly,
                    "a side effect was started twice"
                );
                let started = |event: &Event| matches!(&event.payload, Payload::ToolStarted(s) if s.tool_use_id.as_str() == call.id);
                assert!(self.log.iter().any(started), "a tool runs only when its start is in the log");
            }
        }
        self.in_flight = wanted;
    }

    fn check_not_wedged(&self) {
        if let Some(turn) = &self.state.turn {
            let works = self.in_flight.iter().any(|effect| !matches!(effect, Effect::Deadline(_)));
            let waits = turn.is_paused() && turn.pending().next().is_some();
            assert!(works != waits, "a turn either works or waits for somebody: {turn:#?}");
        }
    }

    /// Loses everything but the log, and picks up from there.
    pub(crate) fn crash(&mut self, from_checkpoint: bool) {
        let folded = if from_checkpoint {
            serde_json::from_slice(&serde_json::to_vec(&self.state).unwrap()).unwrap()
        } else {
            self.fold()
        };
        assert_eq!(folded, self.state, "the fold of the log is the state");
        self.state = folded;
        self.in_flight.clear();
        self.feed(Input::Recover { passwords: Vec::new(), read_only_calls: ReadOnlyCalls::RunAgain })
            .unwrap();
    }

    pub(crate) fn fold(&self) -> State {
        let mut state = empty_state();
        let bytes: Vec<Vec<u8>> = self.log.iter().map(|event| serde_json::to_vec(event).unwrap()).collect();
        for event in bytes {
            state.apply(&serde_json::from_slice(&event).unwrap());
        }
        state
    }

    pub(crate) fn context(&self) -> Vec<Message> {
        self.folded().messages()
    }

    pub(crate) fn folded(&self) -> Context {
        let (mut context, mut amendments) = (Context::default(), Amendments::default());
        self.log.iter().for_each(|event| amendments.apply(event));
        self.log
            .iter()
            .filter(|event| !amendments.hide_from_model(event))
            .for_each(|event| context.apply(event));
        context
    }

    /// The same, taken out message by message as soon as nothing changes it any more.
    pub(crate) fn context_in_pieces(&self) -> Vec<Message> {
        let (mut context, mut amendments) = (Context::default(), Amendments::default());
        self.log.iter().for_each(|event| amendments.apply(event));
        let shown = self.log.iter().filter(|event| !amendments.hide_from_model(event));
        let is_compaction = |event: &&Event| matches!(event.payload, Payload::Compacted(_));
        let compacted_at = shown.clone().rfind(is_compaction).map_or(0, |event| event.sequence);
        let mut messages = Vec::new();
        for event in shown {
            context.apply(event);
            if event.sequence >= compacted_at {
                messages.extend(context.take_settled());
            }
        }
        messages.extend(context.take_messages());
        messages
    }

    pub(crate) fn users(&mut self, events: Vec<UserEvent>) -> Result<Vec<&'static str>, Refusal> {
        self.feed(Input::User { events, said_so_far: String::new(), opening: Opening::default() })
    }

    pub(crate) fn user(&mut self, event: UserEvent) -> Result<Vec<&'static str>, Refusal> {
        self.users(vec![event])
    }

    pub(crate) fn message(&mut self, text: &str) -> Result<Vec<&'static str>, Refusal> {
        self.user(UserEvent::Message(UserMessage::new(vec![Block::text(text)])))
    }

    /// Starts a run with a new id.
    pub(crate) fn run(&mut self, on_tool_error: OnToolError) -> Result<Vec<&'static str>, Refusal> {
        let job = RunJob {
            title: None,
            description: Some("Decide.".into()),
            output_schema: true.into(),
            timeout_seconds: 60.into(),
            max_model_calls: 4,
            on_tool_error,
        };
        let run_id = RunId::from_uuid(self.uuid());
        let opened = RunOpened { run_id, routine_id: "decide".parse().unwrap(), job };
        let message = UserMessage::new(vec![Block::text("{}")]);
        self.feed(Input::RunStarted { opened, message, opening: Opening::default() })
    }

    /// The run that was opened last.
    pub(crate) fn last_run(&self) -> Option<RunId> {
        self.log.iter().rev().find_map(|event| match &event.payload {
            Payload::RunOpened(opened) => Some(opened.run_id.clone()),
            _ => None,
        })
    }

    pub(crate) fn run_times_out(&mut self) -> Vec<&'static str> {
        let Some(run_id) = self.last_run() else { return Vec::new() };
        let error = RunError::new(RunErrorCode::Timeout, "too long");
        self.feed(Input::RunEnded { run_id, error }).unwrap()
    }

    /// How a run ended.
    pub(crate) fn outcomes(&self, run_id: &RunId) -> Vec<&RunOutcome> {
        let settled = self.log.iter().filter_map(|event| match &event.payload {
            Payload::RunSettled(settled) if settled.run_id == *run_id => Some(&settled.outcome),
            _ => None,
        });
        settled.collect()
    }

    pub(crate) fn model_call(&self) -> Option<u32> {
        self.in_flight.iter().find_map(|effect| match effect {
            Effect::CallModel { call, .. } => Some(*call),
            _ => None,
        })
    }

    pub(crate) fn running_tools(&self) -> Vec<String> {
        let running = self.in_flight.iter().filter_map(|effect| match effect {
            Effect::RunTool(call) => Some(call.id.clone()),
            _ => None,
        });
        running.collect()
    }

    pub(crate) fn model_answers(&mut self, spec: &AnswerSpec) -> Vec<&'static str> {
        let Some(call) = self.model_call() else { return Vec::new() };
        let mut parts = Vec::new();
        if spec.thinking {
            parts.push(PlannedPart::Thinking { text: "hm".into(), opaque: None });
        }
        if spec.text {
            parts.push(PlannedPart::Text(format!("text {call}")));
        }
        for call in &spec.calls {
            let call = self.planned(*call);
            parts.push(PlannedPart::Call(call));
        }
        // As a provider would count it: what was said so far, and a system prompt.
        let counts = self.limits.context_tokens.is_some();
        let context: u64 =
            self.context().iter().filter(|_| counts).map(petasos_core::tokens::of_message).sum();
        let usage = Usage {
            input_tokens: 10 + context,
            output_tokens: 5,
            cached_input_tokens: 2,
            ..Usage::default()
        };
        let has_cut_call = spec.stop == Stop::MaxTokens && !spec.calls.is_empty();
        let outcome = Ok(PlannedAnswer {
            parts,
            usage,
            stop: spec.stop,
            has_cut_call,
            call_data: Vec::new(),
            left_out: Vec::new(),
            shows_typing: self.shows_typing,
        });
        self.feed(Input::ModelFinished { call, model: "demo/x".into(), outcome }).unwrap()
    }

    /// The first text of the reply under way arrives.
    pub(crate) fn text_begins(&mut self) -> Vec<&'static str> {
        let call = self.model_call().filter(|_| self.shows_typing);
        call.map_or_else(Vec::new, |call| self.feed(Input::TextBegan { call }).unwrap())
    }

    /// Compacts as the driver would, with a summary of its own.
    pub(crate) fn compaction_ends(&mut self) -> Vec<&'static str> {
        let compacting = self.in_flight.iter().find_map(|effect| match effect {
            Effect::Compact { call, refused, .. } => Some((*call, *refused)),
            _ => None,
        });
        let Some((call, refused)) = compacting else { return Vec::new() };
        let context = self.folded();
        let budget = Budget { compact_at: self.limits.context_tokens.unwrap_or(100), refused };
        let (compacted, summary_call) = match plan(&context, &self.state.context, budget) {
            Plan::Nothing => {
                (Compacted { tokens: self.state.context.tokens(), ..Compacted::default() }, None)
            }
            Plan::Prune { through, tokens } => {
                (Compacted { pruned: through, tokens, ..Compacted::default() }, None)
            }
            Plan::Summarise { through, pruned, kept, tokens, .. } => {
                let usage = Usage { input_tokens: 7, output_tokens: 1, ..Usage::default() };
                let finished =
                    ModelFinished { call, model: "demo/x".into(), usage, ..ModelFinished::default() };
                let summary = format!("Much was said.{kept}");
                (Compacted { through, summary, pruned, tokens }, Some(finished))
            }
        };
        self.feed(Input::CompactionFinished { call, compacted, summary_call }).unwrap()
    }

    pub(crate) fn is_compacting(&self) -> bool {
        self.in_flight.iter().any(|effect| matches!(effect, Effect::Compact { .. }))
    }

    pub(crate) fn model_refuses_length(&mut self) -> Vec<&'static str> {
        let Some(call) = self.model_call() else { return Vec::new() };
        let code = Failure::CONTEXT_TOO_LONG.to_owned();
        let outcome = Err(Failure { code, message: "too long".into() });
        self.feed(Input::ModelFinished { call, model: "demo/x".into(), outcome }).unwrap()
    }

    pub(crate) fn model_fails(&mut self) -> Vec<&'static str> {
        let Some(call) = self.model_call() else { return Vec::new() };
        let outcome = Err(Failure { code: "model_unreachable".into(), message: "down".into() });
        self.feed(Input::ModelFinished { call, model: "demo/x".into(), outcome }).unwrap()
    }

    fn planned(&mut self, spec: CallSpec) -> PlannedCall {
        let uuid = self.uuid();
        let mcp = McpTool { server: "shop".into(), tool: "work".into() };
        let tool = |effect, permission, sudo| PlannedCall::Tool {
            id: ToolUseId::from_uuid(uuid),
            kind: if uuid.as_u128().is_multiple_of(2) { ToolKind::Builtin } else { ToolKind::Mcp(mcp) },
            tool: "work".into(),
            input: Map::new(),
            effect,
            preview: None,
            permission,
            patterns: vec!["work *".into()],
            sudo,
        };
        match spec {
            CallSpec::Run(effect) => tool(effect, Permission::Run, None),
            CallSpec::Ask(effect) => tool(effect, Permission::Ask, None),
            CallSpec::Danger => {
                let danger = Danger {
                    pattern_key: "rm".into(),
                    description: "removes".into(),
                    also: Vec::new(),
                    texts: Vec::new(),
                };
                tool(ToolEffect::ReadOnly, Permission::AskAbout(danger), None)
            }
            CallSpec::Refused => {
                tool(ToolEffect::SideEffect, Permission::Refuse("no such tool".into()), None)
            }
            CallSpec::Sudo => {
                let sudo = Some((RequestId::for_sudo(uuid), "sudo true".into()));
                tool(ToolEffect::SideEffect, Permission::Ask, sudo)
            }
            CallSpec::Custom => PlannedCall::Custom {
                id: ToolUseId::for_custom(uuid),
                tool: "check_order".into(),
                input: Map::new(),
            },
            CallSpec::Clarify => PlannedCall::Clarify {
                request_id: RequestId::from_uuid(uuid),
                question: "which?".into(),
                choices: Some(vec!["a".into()]),
            },
            CallSpec::Output(output) => PlannedCall::Output {
                id: ToolUseId::from_uuid(uuid),
                input: Map::new(),
                emitted: match output {
                    OutputSpec::Fits => Emitted::Fits(Map::from_iter([("ok".to_owned(), true.into())])),
                    OutputSpec::Breaks => {
                        Emitted::Breaks(RunError::new(RunErrorCode::OutputValidationFailed, "no"))
                    }
                    OutputSpec::Unreadable => Emitted::Unreadable("what?".into()),
                },
            },
            CallSpec::Secret => PlannedCall::Secret {
                request_id: RequestId::for_secret(uuid),
                name: "TOKEN".into(),
                prompt: "please".into(),
            },
        }
    }

    pub(crate) fn tool_finishes(&mut self, pick: usize, is_error: bool) -> Vec<&'static str> {
        let running = self.running_tools();
        if running.is_empty() {
            return Vec::new();
        }
        let id = running[pick % running.len()].clone();
        let content = vec![Block::text("done")];
        self.feed(Input::ToolFinished { id, content, is_error }).unwrap()
    }

    /// An answer to one of the pending actions, if there are any.
    pub(crate) fn answer(&self, pick: usize, allow: bool, scope: Scope) -> Option<UserEvent> {
        let pending: Vec<_> = self.state.pending().collect();
        let action = pending.get(pick % pending.len().max(1))?;
        let request = || action.id.parse::<RequestId>().unwrap();
        let tool_use = || action.id.parse::<ToolUseId>().unwrap();
        Some(match action.kind {
            ActionKind::ToolConfirmation => UserEvent::ToolConfirmation(ToolConfirmation {
                tool_use_id: tool_use(),
                result: if allow { Verdict::Allow } else { Verdict::Deny },
                scope,
                reason: None,
                tool: None,
                pattern: None,
                also: Vec::new(),
            }),
            ActionKind::CustomTool => UserEvent::CustomToolResult(CustomToolResult {
                tool_use_id: tool_use(),
                content: vec![Block::text("shipped")],
                is_error: !allow,
            }),
            ActionKind::Clarify => {
                UserEvent::ClarifyResult(ClarifyResult { request_id: request(), answer: String::new() })
            }
            ActionKind::Sudo => UserEvent::SudoResult(RequestAnswered { request_id: request() }),
            ActionKind::Secret => UserEvent::SecretResult(RequestAnswered { request_id: request() }),
        })
    }

    /// A result in place of a call of ours that waits for somebody, if there is one.
    pub(crate) fn answer_for(&self, pick: usize) -> Option<UserEvent> {
        let ours = |action: &PendingAction<'_>| {
            matches!(action.kind, ActionKind::ToolConfirmation | ActionKind::Sudo)
        };
        let pending: Vec<_> = self.state.pending().filter(ours).collect();
        let action = pending.get(pick % pending.len().max(1))?;
        Some(UserEvent::ToolResult(CustomToolResult {
            tool_use_id: action.call.id.parse().unwrap(),
            content: vec![Block::text("made up")],
            is_error: false,
        }))
    }

    /// Lets everything that is under way end well. Panics if the turn never ends.
    pub(crate) fn drain(&mut self) {
        let end = AnswerSpec { text: true, thinking: false, calls: vec![], stop: Stop::EndTurn };
        for _ in 0..1000 {
            if self.state.turn.is_none() {
                return;
            }
            if self.is_compacting() {
                self.compaction_ends();
            } else if self.model_call().is_some() {
                self.model_answers(&end);
            } else if !self.running_tools().is_empty() {
                self.tool_finishes(0, false);
            } else {
                let answer = self.answer(0, true, Scope::Once).expect("something is pending");
                self.user(answer).unwrap();
            }
        }
        panic!("the turn does not end");
    }

    /// What must hold for any log whose last turn has ended.
    pub(crate) fn check_log(&self) {
        assert_eq!(self.fold(), self.state);
        for event in &self.log {
            let (Payload::ToolUse(call) | Payload::McpToolUse(call)) = &event.payload else { continue };
            let ends = |event: &&Event| match &event.payload {
                Payload::ToolResult(result) | Payload::McpToolResult(result) => result.tool_use_id == call.id,
                _ => false,
            };
            assert_eq!(self.log.iter().filter(ends).count(), 1, "every tool use gets exactly one result");
        }
        for event in &self.log {
            let Payload::RunOpened(opened) = &event.payload else { continue };
            assert_eq!(self.outcomes(&opened.run_id).len(), 1, "every run is settled exactly once");
        }
        let mut announced = false;
        for event in &self.log {
            match &event.payload {
                Payload::ModelStarted(_) => announced = false,
                Payload::Typing {} => {
                    assert!(self.shows_typing && !announced, "a reply is announced once, and only if wanted");
                    announced = true;
                }
                _ => {}
            }
        }
        let taken: Vec<u64> = self.log.iter().flat_map(|event| event.payload.takes_up()).copied().collect();
        for event in self.log.iter().filter(|event| event.processed_at.is_none()) {
            let times = taken.iter().filter(|sequence| **sequence == event.sequence).count();
            let waits = self.state.steers.contains(&event.sequence);
            assert_eq!(times, usize::from(!waits), "every user event is taken up once: {event:?}");
        }
        self.check_context();
    }

    fn check_context(&self) {
        let messages = self.context();
        for (index, message) in messages.iter().enumerate() {
            let Message::Assistant(parts) = message else { continue };
            let calls: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    AssistantPart::ToolCall { id, .. } => Some(id.as_str()),
                    _ => None,
                })
                .collect();
            if calls.is_empty() {
                continue;
            }
            let Some(Message::ToolResults(results)) = messages.get(index + 1) else {
                panic!("calls are followed by their results")
            };
            assert_eq!(results.iter().map(|result| result.id.as_str()).collect::<Vec<_>>(), calls);
        }
    }

    pub(crate) fn last_stop(&self) -> Option<&StopReason> {
        self.state.view.stop_reason.as_ref()
    }

    /// The kinds of calls that are pending, for readable assertions.
    pub(crate) fn pending_kinds(&self) -> Vec<CallKind> {
        self.state.pending().map(|action| action.call.kind).collect()
    }
}
