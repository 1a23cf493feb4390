//! What the model is told and shown about a call's result.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::picture::{MAX_BYTES, Picture, Unusable};
use crate::tool::ToolOutput;

/// The most pictures of one result, and their bytes together.
const MAX_PICTURES: usize = 8;
const MAX_PICTURE_BYTES: usize = 10 * 1024 * 1024;
/// The most characters of a type that a server names.
const MAX_TYPE: usize = 100;
/// Some servers leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a result of an MCP server says, as text and pictures. What else it holds is named.
pub(super) fn output(result: &CallToolResult) -> ToolOutput {
    let mut pictures = Pictures::default();
    let mut texts: Vec<String> = result.content.iter().map(|block| pictures.text(block)).collect();
    // Servers that have a structured result repeat it as text; those that do not, have only this.
    if texts.is_empty()
        && let Some(structured) = &result.structured_content
    {
        texts.push(structured.to_string());
    }
    let text = texts.join("\n");
    let is_error = result.is_error.unwrap_or(false);
    let output = if !text.is_empty() {
        ToolOutput { is_error, ..ToolOutput::ok(text) }
    } else if is_error {
        ToolOutput::error("The tool failed and did not say why.")
    } else {
        ToolOutput::ok("The tool has no output.")
    };
    ToolOutput { images: pictures.images, ..output }
}

/// The pictures of one result.
#[derive(Default)]
struct Pictures {
    images: Vec<String>,
    bytes: usize,
}

impl Pictures {
    /// A block as text. A picture is kept, and its text says which it is.
    fn text(&mut self, block: &ContentBlock) -> String {
        match block {
            ContentBlock::Text(content) => content.text.clone(),
            ContentBlock::Image(content) => self.picture("image", &content.mime_type, &content.data),
            ContentBlock::Audio(content) => left_out("audio", &content.mime_type, &content.data, None),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    match mime_type.as_deref().unwrap_or("binary") {
                        kind if kind.starts_with("image/") => self.picture(uri, kind, blob),
                        kind => left_out(uri, kind, blob, None),
                    }
                }
                _ => "[a resource of an unknown kind]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
            _ => "[content of an unknown kind]".to_owned(),
        }
    }

    fn picture(&mut self, what: &str, kind: &str, base64: &str) -> String {
        match self.keep(base64) {
            Ok(described) => format!("[{what}, {described}]"),
            Err(why) => left_out(what, kind, base64, Some(why)),
        }
    }

    /// Keeps a picture, if it is one. Its type is what its bytes say, whatever the server says.
    fn keep(&mut self, base64: &str) -> Result<String, String> {
        let length = decoded_length(base64);
        if length > MAX_BYTES {
            return Err(Unusable::TooManyBytes(length.try_into().unwrap_or(u64::MAX)).to_string());
        }
        if self.images.len() >= MAX_PICTURES || self.bytes + length > MAX_PICTURE_BYTES {
            return Err("the result holds too many pictures".to_owned());
        }
        let bytes = BASE64.decode(base64).map_err(|_| "it is not base64".to_owned())?;
        let picture = Picture::read(&bytes).map_err(|why| why.to_string())?;
        self.bytes += bytes.len();
        self.images.push(picture.data_uri(&bytes));
        Ok(picture.described(bytes.len()))
    }
}

fn left_out(what: &str, kind: &str, base64: &str, why: Option<String>) -> String {
    let kind: String = kind.chars().take(MAX_TYPE).collect();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("[{what}, {kind}, {} bytes, left out{why}]", decoded_length(base64))
}

fn decoded_length(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(result: serde_json::Value) -> ToolOutput {
        output(&serde_json::from_value(result).unwrap())
    }

    fn gif(bytes: usize) -> String {
        let mut gif = b"GIF89a\x02\0\x03\0\0\0\0".to_vec();
        gif.resize(bytes, 0);
        BASE64.encode(gif)
    }

    #[test]
    fn every_kind_of_content_becomes_text_or_a_picture() {
        let gif = gif(13);
        let result = json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": gif, "mimeType": "image/png" },
            { "type": "image", "data": "aaaaaaaa", "mimeType": "image/png" },
            { "type": "image", "data": "%", "mimeType": "image/png" },
            { "type": "audio", "data": "aaaa", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "two" } },
            { "type": "resource", "resource": { "uri": "file:///c", "mimeType": "image/gif", "blob": gif } },
            { "type": "resource", "resource": { "uri": "file:///d", "mimeType": "application/pdf", "blob": "aaaa" } },
            { "type": "resource_link", "uri": "file:///b", "name": "b" },
        ] });
        let output = of(result);
        let lines: Vec<&str> = output.text.lines().collect();
        let expected = [
            "one",
            "[image, image/gif, 2x3 pixels, 13 bytes]",
            "[image, image/png, 6 bytes, left out: it is no PNG, JPEG, GIF or WebP]",
            "[image, image/png, 0 bytes, left out: it is not base64]",
            "[audio, audio/wav, 3 bytes, left out]",
            "file:///a:",
            "two",
            "[file:///c, image/gif, 2x3 pixels, 13 bytes]",
            "[file:///d, application/pdf, 3 bytes, left out]",
            "b: file:///b",
        ];
        assert_eq!(lines, expected);
        let uri = format!("data:image/gif;base64,{gif}");
        assert_eq!(output.images, [uri.clone(), uri]);
    }

    #[test]
    fn pictures_are_bounded_each_and_together() {
        let large = json!({ "type": "image", "data": gif(MAX_BYTES + 1), "mimeType": "image/gif" });
        let output = of(json!({ "content": [large] }));
        assert!(
            output.images.is_empty() && output.text.contains("at most 5242880 are shown"),
            "{}",
            output.text
        );
        let half = json!({ "type": "image", "data": gif(4 * 1024 * 1024), "mimeType": "image/gif" });
        let small = json!({ "type": "image", "data": gif(13), "mimeType": "image/gif" });
        for (content, kept) in [(vec![half; 3], 2), (vec![small; 20], MAX_PICTURES)] {
            let output = of(json!({ "content": content }));
            assert_eq!(output.images.len(), kept);
            assert!(output.text.contains("too many pictures"), "{}", output.text);
        }
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
