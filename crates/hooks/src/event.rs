//! The named points at which hooks fire.

use std::fmt;

/// A point at which hooks fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    /// Before a tool call, which it can block.
    PreToolCall,
    /// After a tool call.
    PostToolCall,
    /// Once per turn before the first model call, to which it can add context.
    PreLlmCall,
    /// After a turn's final text.
    PostLlmCall,
    /// At the first turn of a session.
    OnSessionStart,
    /// At the end of each turn.
    OnSessionEnd,
    /// When a session is torn down.
    OnSessionFinalize,
    /// When a channel puts a fresh session in place of another.
    OnSessionReset,
    /// When a subagent begins.
    SubagentStart,
    /// When a subagent has ended.
    SubagentStop,
    /// When a channel received a message, before anything is done about it.
    PreGatewayDispatch,
    /// Before a person is asked for permission.
    PreApprovalRequest,
    /// After the person answered, or did not in time.
    PostApprovalResponse,
    /// After a tool call, to put another result in place.
    TransformToolResult,
    /// After a command, to put another output in place.
    TransformTerminalOutput,
    /// After the model's final text, to put another in place.
    TransformLlmOutput,
    /// Before each request to a model's provider.
    PreApiRequest,
    /// After each answer of a provider.
    PostApiRequest,
    /// After each request that failed.
    ApiRequestError,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [HookEvent; 19] = [
        HookEvent::PreToolCall,
        HookEvent::PostToolCall,
        HookEvent::PreLlmCall,
        HookEvent::PostLlmCall,
        HookEvent::OnSessionStart,
        HookEvent::OnSessionEnd,
        HookEvent::OnSessionFinalize,
        HookEvent::OnSessionReset,
        HookEvent::SubagentStart,
        HookEvent::SubagentStop,
        HookEvent::PreGatewayDispatch,
        HookEvent::PreApprovalRequest,
        HookEvent::PostApprovalResponse,
        HookEvent::TransformToolResult,
        HookEvent::TransformTerminalOutput,
        HookEvent::TransformLlmOutput,
        HookEvent::PreApiRequest,
        HookEvent::PostApiRequest,
        HookEvent::ApiRequestError,
    ];

    /// The name that configuration and callbacks know it by.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::PreToolCall => "pre_tool_call",
            HookEvent::PostToolCall => "post_tool_call",
            HookEvent::PreLlmCall => "pre_llm_call",
            HookEvent::PostLlmCall => "post_llm_call",
            HookEvent::OnSessionStart => "on_session_start",
            HookEvent::OnSessionEnd => "on_session_end",
            HookEvent::OnSessionFinalize => "on_session_finalize",
            HookEvent::OnSessionReset => "on_session_reset",
            HookEvent::SubagentStart => "subagent_start",
            HookEvent::SubagentStop => "subagent_stop",
            HookEvent::PreGatewayDispatch => "pre_gateway_dispatch",
            HookEvent::PreApprovalRequest => "pre_approval_request",
            HookEvent::PostApprovalResponse => "post_approval_response",
            HookEvent::TransformToolResult => "transform_tool_result",
            HookEvent::TransformTerminalOutput => "transform_terminal_output",
            HookEvent::TransformLlmOutput => "transform_llm_output",
            HookEvent::PreApiRequest => "pre_api_request",
            HookEvent::PostApiRequest => "post_api_request",
            HookEvent::ApiRequestError => "api_request_error",
        }
    }

    /// The event of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// The event that somebody who wrote `name` most likely meant.
    pub fn closest(name: &str) -> Option<Self> {
        let likeness = |event: &HookEvent| strsim::normalized_levenshtein(name, event.name());
        let closest = Self::ALL.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
        (likeness(&closest) >= 0.6).then_some(closest)
    }

    /// Whether callbacks can only watch, so that what they answer is of no use.
    pub fn is_observer(self) -> bool {
        !matches!(
            self,
            HookEvent::PreToolCall
                | HookEvent::PreLlmCall
                | HookEvent::PreGatewayDispatch
                | HookEvent::TransformToolResult
                | HookEvent::TransformTerminalOutput
                | HookEvent::TransformLlmOutput
        )
    }

    fn bit(self) -> u32 {
        1 << (self as u32)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSet(u32);

impl EventSet {
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the event is one of them.
    pub fn contains(self, event: HookEvent) -> bool {
        self.0 & event.bit() != 0
    }

    /// The same set with the event.
    #[must_use]
    pub fn with(self, event: HookEvent) -> Self {
        EventSet(self.0 | event.bit())
    }
}

impl FromIterator<HookEvent> for EventSet {
    fn from_iter<T: IntoIterator<Item = HookEvent>>(events: T) -> Self {
        events.into_iter().fold(EventSet::default(), EventSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name_and_a_bit_of_its_own() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::named(event.name()), Some(event));
            let alone = EventSet::default().with(event);
            assert!(HookEvent::ALL.into_iter().all(|other| alone.contains(other) == (other == event)));
        }
    }

    #[test]
    fn a_slip_is_understood_and_nonsense_is_not() {
        assert_eq!(HookEvent::closest("pre_tool_cal"), Some(HookEvent::PreToolCall));
        assert_eq!(HookEvent::closest("PreToolUse"), None);
        assert_eq!(HookEvent::closest("on_session_ends"), Some(HookEvent::OnSessionEnd));
        assert_eq!(HookEvent::closest("x"), None);
    }
}
