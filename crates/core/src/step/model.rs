//! What a finished model call appends.

use crate::event::{
    AgentMessage, AgentThinking, Block, ClarifyRequest, CustomToolUse, Failure, ModelFinished,
    ModelSettingsLeftOut, Payload, SecretRequest, SudoRequest, ToolEffect, ToolUse,
};
use crate::ids::ToolUseId;
use crate::model::Stop;
use crate::run::EMIT_OUTPUT;
use crate::state::{CallKind, Phase};

use super::tool::FinishedCall;
use super::{Emitted, Permission, PlannedAnswer, PlannedCall, PlannedPart, Step, ToolKind};

impl Step<'_> {
    /// Announces the text of a reply, once for each model call.
    pub(super) fn text_began(&mut self, call: u32) {
        let is_announced = self.state.turn.as_ref().is_some_and(|turn| turn.typing_call == Some(call));
        if self.awaits_model_call(call) && !is_announced {
            self.emit(Payload::Typing {});
        }
    }

    fn awaits_model_call(&self, call: u32) -> bool {
        let turn = self.state.turn.as_ref();
        turn.is_some_and(|turn| turn.phase == Phase::CallingModel && turn.model_calls == call)
    }

    pub(super) fn model_finished(
        &mut self,
        call: u32,
        model: String,
        outcome: Result<PlannedAnswer, Failure>,
    ) {
        // A call that was interrupted may still report; the turn has moved on without it.
        if !self.awaits_model_call(call) {
            return;
        }
        match outcome {
            Err(failure) => self.emit(Payload::ModelFinished(ModelFinished {
                call,
                model,
                error: Some(failure),
                ..ModelFinished::default()
            })),
            Ok(answer) => {
                let PlannedAnswer { usage, stop, has_cut_call, .. } = answer;
                let makes_calls = stop != Stop::Refusal;
                let calls = answer.parts.iter().filter(|part| matches!(part, PlannedPart::Call(_))).count();
                let tool_calls = if makes_calls { calls } else { 0 };
                // The calls go on where the answer ended, so that it was not cut short for the turn.
                let cut_short = stop.cut_short().filter(|_| tool_calls == 0);
                let says = |part: &PlannedPart| matches!(part, PlannedPart::Text(text) if !text.is_empty());
                if answer.shows_typing && answer.parts.iter().any(says) {
                    self.text_began(call);
                }
                let named = self.state.left_out.get(&model);
                let is_new = |name: &&str| !named.is_some_and(|named| named.contains(*name));
                let mut call_data = if makes_calls { answer.call_data } else { Vec::new() };
                if call_data.iter().all(Option::is_none) {
                    call_data.clear();
                }
                let left_out = answer.left_out.iter().copied().filter(is_new).map(str::to_owned).collect();
                self.emit(Payload::ModelFinished(ModelFinished {
                    call,
                    model: model.clone(),
                    usage,
                    tool_calls: u32::try_from(tool_calls).unwrap_or(u32::MAX),
                    cut_short,
                    cut_call: has_cut_call,
                    call_data,
                    ..ModelFinished::default()
                }));
                self.name_left_out(model, left_out);
                let mut decided = Vec::new();
                for part in answer.parts {
                    decided.extend(self.part(part, makes_calls));
                }
                // Everything that the model called is in the log before anything that came of it.
                for call in decided {
                    match call {
                        Decided::Refused { id, tool, kind, why } => {
                            let (id, content) = (id.as_str(), vec![Block::text(why)]);
                            self.emit_result(FinishedCall { id, tool: &tool, kind, content, is_error: true });
                        }
                        Decided::Output { id, emitted } => self.output(&id, emitted),
                    }
                }
            }
        }
    }

    fn name_left_out(&mut self, model: String, settings: Vec<String>) {
        if !settings.is_empty() {
            self.emit(Payload::ModelSettingsLeftOut(ModelSettingsLeftOut { model, settings }));
        }
    }

    fn part(&mut self, part: PlannedPart, makes_calls: bool) -> Option<Decided> {
        match part {
            PlannedPart::Thinking { text, opaque } => {
                self.emit(Payload::AgentThinking(AgentThinking { text, opaque }));
            }
            PlannedPart::Text(text) => self.emit(Payload::AgentMessage(AgentMessage { text })),
            PlannedPart::Call(call) if makes_calls => return self.call(call),
            PlannedPart::Call(_) => {}
        }
        None
    }

    fn call(&mut self, call: PlannedCall) -> Option<Decided> {
        match call {
            PlannedCall::Tool { id, kind, tool, input, effect, preview, permission, patterns, sudo } => {
                let asks = match &permission {
                    Permission::Ask => !self.state.allowed_tools.contains(&tool),
                    Permission::AskAbout(danger) => {
                        !danger.grants().all(|grant| self.state.allowed_tools.contains(&grant))
                    }
                    Permission::Run | Permission::Refuse(_) => false,
                };
                let danger = match &permission {
                    Permission::AskAbout(danger) => Some(danger.clone()),
                    _ => None,
                };
                let tool_use = ToolUse {
                    id: id.clone(),
                    tool: tool.clone(),
                    input,
                    effect,
                    preview,
                    requires_action: asks,
                    danger,
                    patterns: if asks { patterns } else { Vec::new() },
                    budget: None,
                    mcp: None,
                };
                let (kind, payload) = match kind {
                    ToolKind::Builtin => (CallKind::Builtin, Payload::ToolUse(tool_use)),
                    ToolKind::Mcp(mcp) => {
                        (CallKind::Mcp, Payload::McpToolUse(ToolUse { mcp: Some(mcp), ..tool_use }))
                    }
                };
                self.emit(payload);
                if let Permission::Refuse(why) = permission {
                    return Some(Decided::Refused { id, tool, kind, why });
                } else if let Some((request_id, command)) = sudo {
                    self.emit(Payload::SudoRequest(SudoRequest { request_id, tool_use_id: id, command }));
                }
            }
            PlannedCall::Custom { id, tool, input } => {
                self.emit(Payload::CustomToolUse(CustomToolUse { id, tool, input }));
            }
            PlannedCall::Clarify { request_id, question, choices } => {
                self.emit(Payload::ClarifyRequest(ClarifyRequest { request_id, question, choices }));
            }
            PlannedCall::Secret { request_id, name, prompt } => {
                self.emit(Payload::SecretRequest(SecretRequest { request_id, name, prompt }));
            }
            PlannedCall::Output { id, input, emitted } => {
                let (tool, effect) = (EMIT_OUTPUT.to_owned(), ToolEffect::ReadOnly);
                self.emit(Payload::ToolUse(ToolUse {
                    id: id.clone(),
                    tool,
                    input,
                    effect,
                    preview: None,
                    requires_action: false,
                    danger: None,
                    patterns: Vec::new(),
                    budget: None,
                    mcp: None,
                }));
                return Some(Decided::Output { id, emitted });
            }
        }
        None
    }
}

/// A call whose result is known without running anything.
enum Decided {
    /// It never runs.
    Refused { id: ToolUseId, tool: String, kind: CallKind, why: String },
    /// It hands in the output of a run.
    Output { id: ToolUseId, emitted: Emitted },
}
