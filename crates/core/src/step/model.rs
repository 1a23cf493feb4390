//! What a finished model call appends.

use crate::event::{
    AgentMessage, AgentThinking, Block, ClarifyRequest, CustomToolUse, CutShort, Failure, ModelFinished,
    Payload, SecretRequest, SudoRequest, ToolEffect, ToolUse,
};
use crate::ids::ToolUseId;
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
                let cut_short = answer.stop.cut_short();
                let usage = answer.usage;
                let calls = answer.parts.iter().filter(|part| matches!(part, PlannedPart::Call(_))).count();
                // Those of an answer that was cut short are not made.
                let tool_calls = if cut_short.is_some() { 0 } else { calls };
                let says = |part: &PlannedPart| matches!(part, PlannedPart::Text(text) if !text.is_empty());
                if answer.shows_typing && answer.parts.iter().any(says) {
                    self.text_began(call);
                }
                self.emit(Payload::ModelFinished(ModelFinished {
                    call,
                    model,
                    usage,
                    tool_calls: u32::try_from(tool_calls).unwrap_or(u32::MAX),
                    cut_short,
                    ..ModelFinished::default()
                }));
                let mut decided = Vec::new();
                for part in answer.parts {
                    decided.extend(self.part(part, cut_short));
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

    fn part(&mut self, part: PlannedPart, cut_short: Option<CutShort>) -> Option<Decided> {
        match part {
            PlannedPart::Thinking { text, opaque } => {
                self.emit(Payload::AgentThinking(AgentThinking { text, opaque }));
            }
            PlannedPart::Text(text) => self.emit(Payload::AgentMessage(AgentMessage { text })),
            // The arguments of a call in an answer that was cut off may be cut off too.
            PlannedPart::Call(_) if cut_short.is_some() => {}
            PlannedPart::Call(call) => return self.call(call),
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
