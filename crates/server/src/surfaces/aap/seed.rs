//! A conversation that a session begins with, as entries of its log.

use petasos_core::event::{
    AgentMessage, AgentThinking, CustomToolResult, CustomToolUse, MessagePlace, Payload, SystemMessage,
    UserMessage,
};
use petasos_core::ids::ToolUseId;

use super::content;
use super::types::{Content, ContentBlock, HistoryMessage};
use crate::problem::Problem;

const MAX_MESSAGES: usize = 10_000;

/// Reads seeded messages. What was called is taken for a tool of the application: nothing of it will ever run.
pub(super) fn read(messages: &[HistoryMessage]) -> Result<Vec<Payload>, Problem> {
    if messages.len() > MAX_MESSAGES {
        let problem = format!("has {} entries; at most {MAX_MESSAGES} are allowed", messages.len());
        return Err(Problem::validation("messages", problem));
    }
    let mut seed = Seed::default();
    for (index, message) in messages.iter().enumerate() {
        seed.message(message, &format!("messages[{index}]"))?;
    }
    Ok(seed.log)
}

/// Whether there is an image in it.
pub(super) fn has_image(log: &[Payload]) -> bool {
    log.iter().any(|payload| match payload {
        Payload::UserMessage(message) => content::has_image(&message.content),
        Payload::UserCustomToolResult(result) => content::has_image(&result.content),
        _ => false,
    })
}

#[derive(Default)]
struct Seed {
    log: Vec<Payload>,
    /// Calls without a result, which must come before anything else is said.
    open: Vec<String>,
}

impl Seed {
    fn message(&mut self, message: &HistoryMessage, path: &str) -> Result<(), Problem> {
        let in_content = format!("{path}.content");
        match message {
            HistoryMessage::System { content } => {
                self.log.push(Payload::SystemMessage(SystemMessage { text: content.clone() }));
            }
            HistoryMessage::User { content } => {
                self.refuse_while_open(path)?;
                let content = content::read(content, &in_content)?;
                self.log.push(Payload::UserMessage(UserMessage {
                    place: MessagePlace::Seeded,
                    ..UserMessage::new(content)
                }));
            }
            HistoryMessage::Assistant { content } => {
                self.refuse_while_open(path)?;
                self.log.push(Payload::MessageSeeded {});
                match content {
                    Content::Text(text) => self.text(text),
                    Content::Blocks(blocks) => {
                        for (index, block) in blocks.iter().enumerate() {
                            self.block(block, &format!("{in_content}[{index}]"))?;
                        }
                    }
                }
            }
            HistoryMessage::Tool { tool_call_id, content } => {
                let at = format!("{path}.toolCallId");
                let Some(index) = self.open.iter().position(|open| open == tool_call_id) else {
                    let problem =
                        format!("{tool_call_id:?} is no call of the message before that lacks a result");
                    return Err(Problem::validation(at, problem));
                };
                self.open.remove(index);
                let content = content::read(content, &in_content)?;
                let tool_use_id = call_id(tool_call_id, at)?;
                let result = CustomToolResult { tool_use_id, content, is_error: false };
                self.log.push(Payload::UserCustomToolResult(result));
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.log.push(Payload::AgentMessage(AgentMessage { text: text.to_owned() }));
    }

    fn block(&mut self, block: &ContentBlock, path: &str) -> Result<(), Problem> {
        match block {
            ContentBlock::Text { text } => self.text(text),
            ContentBlock::Thinking { thinking } => {
                let thinking = AgentThinking { text: thinking.clone(), opaque: None };
                self.log.push(Payload::AgentThinking(thinking));
            }
            ContentBlock::ToolUse { tool_call_id, name, input } => {
                let at = format!("{path}.toolCallId");
                if self.open.contains(tool_call_id) {
                    return Err(Problem::validation(at, format!("{tool_call_id:?} is used twice")));
                }
                let id = call_id(tool_call_id, at)?;
                self.open.push(tool_call_id.clone());
                let call = CustomToolUse { id, tool: name.clone(), input: input.clone() };
                self.log.push(Payload::CustomToolUse(call));
            }
            ContentBlock::Image { .. } => {
                let problem =
                    "an assistant says text, thinking and tool_use; images come from users and tools";
                return Err(Problem::validation(format!("{path}.type"), problem));
            }
        }
        Ok(())
    }

    fn refuse_while_open(&self, path: &str) -> Result<(), Problem> {
        match self.open.first() {
            None => Ok(()),
            Some(open) => {
                let problem = format!("the call {open} has no tool message yet; it goes before this one");
                Err(Problem::validation(path, problem))
            }
        }
    }
}

fn call_id(text: &str, path: String) -> Result<ToolUseId, Problem> {
    text.parse().map_err(|_| Problem::validation(path, "must be 1 to 128 letters, digits, '_' or '-'"))
}
