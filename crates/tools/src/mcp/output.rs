//! What the model is told about a call's result.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::tool::ToolOutput;

/// What a result of an MCP server says, as text.
pub(super) fn output(result: &CallToolResult) -> ToolOutput {
    let mut texts: Vec<String> = result.content.iter().map(text).collect();
    // Servers that have a structured result repeat it as text; those that do not, have only this.
    if texts.is_empty()
        && let Some(structured) = &result.structured_content
    {
        texts.push(structured.to_string());
    }
    let text = texts.join("\n");
    let is_error = result.is_error.unwrap_or(false);
    if !text.is_empty() {
        ToolOutput { text, is_error }
    } else if is_error {
        ToolOutput::error("The tool failed and did not say why.")
    } else {
        ToolOutput::ok("The tool has no output.")
    }
}

fn text(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(content) => content.text.clone(),
        ContentBlock::Image(content) => left_out("image", &content.mime_type, &content.data),
        ContentBlock::Audio(content) => left_out("audio", &content.mime_type, &content.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                left_out(uri, mime_type.as_deref().unwrap_or("binary"), blob)
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn left_out(what: &str, kind: &str, base64: &str) -> String {
    format!("[{what}, {kind}, {} bytes, left out]", base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(result: serde_json::Value) -> ToolOutput {
        output(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content_becomes_text() {
        let result = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": "aaaaaaaa", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "two" } },
            { "type": "resource_link", "uri": "file:///b", "name": "b" },
        ] });
        let text = "one\n[image, image/png, 6 bytes, left out]\nfile:///a:\ntwo\nb: file:///b";
        assert_eq!(of(result), ToolOutput::ok(text));
    }

    #[test]
    fn results_without_text_say_so() {
        assert_eq!(
            of(json!({ "content": [], "structuredContent": { "a": 1 } })),
            ToolOutput::ok("{\"a\":1}")
        );
        assert_eq!(of(json!({ "content": [] })), ToolOutput::ok("The tool has no output."));
        assert!(of(json!({ "content": [], "isError": true })).is_error);
    }
}
