//! Content between the wire and the log.

use petasos_core::event::Block;

use super::types::{Content, ContentBlock};
use crate::problem::Problem;

/// The types of images that content can hold as data. Every model that takes images takes these.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MAX_LINK: usize = 8192;
const MAX_BLOCKS: usize = 1000;

/// Content of the log as it is shown.
pub(super) fn shown(blocks: Vec<Block>) -> Content {
    let block = |block| match block {
        Block::Text { text } => ContentBlock::Text { text },
        Block::Image { url } => ContentBlock::Image { url },
    };
    plain(Content::Blocks(blocks.into_iter().map(block).collect()))
}

/// One text is shown as a text, and nothing as an empty one.
pub(super) fn plain(content: Content) -> Content {
    match content {
        Content::Blocks(mut blocks) => match (blocks.pop(), blocks.is_empty()) {
            (None, _) => Content::Text(String::new()),
            (Some(ContentBlock::Text { text }), true) => Content::Text(text),
            (Some(last), _) => {
                blocks.push(last);
                Content::Blocks(blocks)
            }
        },
        text => text,
    }
}

/// Reads what a user or a tool says: text and images. `path` says where it is in the request.
pub(super) fn read(content: &Content, path: &str) -> Result<Vec<Block>, Problem> {
    let blocks = match content {
        Content::Text(text) => return Ok(vec![Block::text(text)]),
        Content::Blocks(blocks) => blocks,
    };
    if blocks.is_empty() || blocks.len() > MAX_BLOCKS {
        return Err(Problem::validation(path, format!("must hold 1 to {MAX_BLOCKS} blocks")));
    }
    let read = |(index, block): (usize, &ContentBlock)| match block {
        ContentBlock::Text { text } => Ok(Block::text(text)),
        ContentBlock::Image { url } => match image_problem(url) {
            None => Ok(Block::Image { url: url.clone() }),
            Some(problem) => Err(Problem::validation(format!("{path}[{index}].url"), problem)),
        },
        ContentBlock::Thinking { .. } | ContentBlock::ToolUse { .. } => {
            let problem = "only what an assistant says can hold thinking and tool_use";
            Err(Problem::validation(format!("{path}[{index}].type"), problem))
        }
    };
    blocks.iter().enumerate().map(read).collect()
}

/// Says what is wrong with the address of an image, if anything.
fn image_problem(url: &str) -> Option<String> {
    if let Some(link) = url.strip_prefix("https://") {
        let has_host = link.starts_with(|first: char| first.is_alphanumeric() || first == '[');
        let is_link = has_host && link.len() <= MAX_LINK && !link.contains(char::is_whitespace);
        return (!is_link).then(|| format!("is not a link of at most {MAX_LINK} characters"));
    }
    let Some((kind, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        return Some("must be an https:// link or a data: URI with base64".to_owned());
    };
    if !IMAGE_TYPES.contains(&kind) {
        return Some(format!("{kind:?} is not one of {}", IMAGE_TYPES.join(", ")));
    }
    let digits = data.trim_end_matches('=');
    let is_base64 = !digits.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/');
    (!is_base64).then(|| "the data is not base64".to_owned())
}

/// Whether there is an image in it.
pub(super) fn has_image(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| matches!(block, Block::Image { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_data_are_told_from_what_is_neither() {
        for url in ["https://example.com/a.png", "https://[::1]/a", "data:image/png;base64,iVBORw0KGgo="] {
            assert_eq!(image_problem(url), None, "{url}");
        }
        for url in [
            "http://example.com/a.png",
            "https://",
            "https:///a.png",
            "https://example.com/a b",
            "file:///etc/passwd",
            "data:image/png,AAAA",
            "data:text/html;base64,AAAA",
            "data:image/png;base64,",
            "data:image/png;base64,AAA",
            "data:image/png;base64,A===",
            "data:image/png;base64,AA-_",
        ] {
            assert!(image_problem(url).is_some(), "{url}");
        }
    }
}
