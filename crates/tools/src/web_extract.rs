//! `web_extract`: a web page as Markdown.
//!
//! The address comes from the model, so it is reached through the egress guard, and only so much of the page is read.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_net::{Answer, Bounds, Client, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::blocking::blocking;
use crate::markdown::{Markdown, markdown};
use crate::tool::{Invocation, Tool, ToolOutput};

const BOUNDS: Bounds = Bounds { time: Duration::from_secs(30), body_bytes: 2 * 1024 * 1024, redirects: 5 };
/// How long it may take to make Markdown of a page. What was not made to be slow takes milliseconds.
const MAX_TIME: Duration = Duration::from_secs(5);
/// The most characters of one answer.
const MAX_CHARS: usize = 60_000;
const HEADERS: [(&str, &str); 2] =
    [("accept", "text/html,text/plain,application/json;q=0.9,*/*;q=0.5"), ("accept-language", "en,*;q=0.5")];
/// Reads web pages.
#[derive(Clone)]
pub(crate) struct WebExtract {
    pub(crate) client: Client,
    /// Whether a person is asked first when no policy says anything about the tool. An address can carry away what the
    /// model has read.
    pub(crate) asks: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    offset: Option<usize>,
}

impl Tool for WebExtract {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_extract".to_owned(),
            description: "Read a web page as Markdown.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "url": { "type": "string" },
                    "offset": { "type": "integer", "description": "Characters to skip, to read on." },
                },
                "required": ["url"],
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn asks_by_default(&self) -> bool {
        self.asks
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("url")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        async move { tool.read(&invocation.input).await.unwrap_or_else(ToolOutput::error) }.boxed()
    }
}

impl WebExtract {
    async fn read(&self, input: &Map<String, Value>) -> Result<ToolOutput, String> {
        let Input { url, offset } = parse(input)?;
        let answer = self.client.send(Method::Get, url.trim(), &HEADERS, None, BOUNDS).await;
        let answer = answer.map_err(|error| format!("The page cannot be read: {error}."))?;
        if !(200..300).contains(&answer.status) {
            return Err(format!("{} answers {}.", answer.url, answer.status));
        }
        let kind = answer.content_type.as_deref().unwrap_or("text/html").to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        // A page can be made to take long, and the server must not wait for it.
        Ok(blocking(move || shown(&answer, &kind, offset.unwrap_or(0))).await)
    }
}

/// What the model gets of a page.
fn shown(answer: &Answer, kind: &str, offset: usize) -> Result<ToolOutput, String> {
    let text = String::from_utf8_lossy(&answer.body);
    let (text, slow) = match kind {
        "text/html" | "application/xhtml+xml" => {
            let Markdown { text, cut } = markdown(&text, MAX_TIME);
            (text, cut)
        }
        kind if is_text(kind) => (text.into_owned(), false),
        kind => return Err(format!("{} is {kind}, which is not text.", answer.url)),
    };
    let cut = match (slow, answer.cut) {
        (true, _) => "\n[The page takes too long to be read; the rest was left out.]",
        (_, true) => "\n[The page is longer than 2 MB; the rest was not read.]",
        _ => "",
    };
    Ok(ToolOutput::ok(format!("{}\n\n{}{cut}", answer.url, part(&text, offset))))
}

fn is_text(kind: &str) -> bool {
    let named = ["application/json", "application/xml", "application/javascript", "application/yaml"];
    kind.starts_with("text/") || named.contains(&kind) || kind.ends_with("+json") || kind.ends_with("+xml")
}

/// The part of a text that begins at `offset`, with a word on what is left.
fn part(text: &str, offset: usize) -> String {
    let count = text.chars().count();
    let part: String = text.chars().skip(offset).take(MAX_CHARS).collect();
    let end = offset.saturating_add(MAX_CHARS);
    match count.saturating_sub(end) {
        0 if part.is_empty() => "There is no text here.".to_owned(),
        0 => part,
        left => format!("{part}\n[{left} more characters: go on with offset {end}.]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_come_in_parts() {
        assert_eq!(part("abc", 1), "bc");
        assert_eq!(part("abc", 9), "There is no text here.");
        let long = "x".repeat(MAX_CHARS + 5);
        assert!(part(&long, 0).ends_with(&format!("[5 more characters: go on with offset {MAX_CHARS}.]")));
        assert_eq!(part(&long, MAX_CHARS), "xxxxx");
    }
}
