//! Web pages as Markdown.
//!
//! A page is whatever somebody wrote. Building its tree can take memory and stack far beyond its size (elements that
//! are nested a hundred thousand deep, formatting that is opened again in every paragraph), so this goes over its tags
//! once, from the first to the last, and keeps no tree. What still takes too long (a tag with a hundred thousand
//! attributes, each of which is compared with all others) ends the page there.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, CharacterTokens, EndTag, StartTag, Tag, TagToken, Token, TokenSink, TokenSinkResult,
    Tokenizer, TokenizerOpts,
};

/// Elements whose content is not for readers.
const SKIPPED: [&str; 9] =
    ["script", "style", "noscript", "svg", "iframe", "template", "canvas", "select", "title"];
/// Elements that stand in lines of their own.
const BLOCKS: [&str; 19] = [
    "p",
    "div",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "aside",
    "nav",
    "table",
    "figure",
    "form",
    "dl",
    "blockquote",
    "details",
    "ul",
    "ol",
    "body",
    "address",
];
const MAX_LISTS: usize = 8;

/// How much of a page is read before somebody looks at the clock.
const PIECE_BYTES: usize = 4 * 1024;

/// The readable part of a page.
pub(crate) struct Markdown {
    pub(crate) text: String,
    /// Whether the time was up before the end.
    pub(crate) cut: bool,
}

/// The readable part of a page, as far as it can be read in that time.
pub(crate) fn markdown(html: &str, time: Duration) -> Markdown {
    let started = Instant::now();
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() && started.elapsed() < time {
        let (piece, after) = rest.split_at(piece_end(rest));
        rest = after;
        input.push_back(StrTendril::from(piece));
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
    }
    tokenizer.end();
    let text = tokenizer.sink.0.into_inner().text;
    Markdown { text: text.trim().to_owned(), cut: !rest.is_empty() }
}

fn piece_end(text: &str) -> usize {
    (PIECE_BYTES..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

#[derive(Default)]
struct Sink(RefCell<Writer>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            TagToken(tag) => {
                let name: &str = &tag.name;
                if tag.kind == StartTag && !tag.self_closing {
                    writer.start(&tag);
                    // What is in these is no markup.
                    match name {
                        "script" => return TokenSinkResult::RawData(RawKind::ScriptData),
                        "style" | "iframe" | "noscript" => return TokenSinkResult::RawData(RawKind::Rawtext),
                        "title" | "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
                        _ => {}
                    }
                } else if tag.kind == StartTag {
                    writer.start(&tag);
                    writer.end(name);
                } else if tag.kind == EndTag {
                    writer.end(name);
                }
            }
            CharacterTokens(text) => writer.characters(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    /// How many elements are open whose content is left out, and which one is the outermost.
    skipping: usize,
    skipped: String,
    /// Open lists: none is unordered, a number is the next one's.
    lists: Vec<Option<usize>>,
    links: Vec<String>,
    /// Whether white space counts.
    preformatted: bool,
}

impl Writer {
    fn start(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        if self.skipping > 0 {
            self.skipping += usize::from(name == self.skipped && !tag.self_closing);
            return;
        }
        match name {
            name if SKIPPED.contains(&name) => (self.skipping, self.skipped) = (1, name.to_owned()),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.paragraph();
                let level = name[1..].parse().unwrap_or(1);
                self.text.push_str(&"#".repeat(level));
                self.text.push(' ');
            }
            "ul" | "ol" => {
                self.line();
                if self.lists.len() < MAX_LISTS {
                    self.lists.push((name == "ol").then_some(1));
                }
            }
            "li" => self.item(),
            "tr" | "dt" => self.line(),
            "td" | "th" => self.text.push_str("| "),
            "dd" => {
                self.line();
                self.text.push_str(": ");
            }
            "br" => self.text.push('\n'),
            "hr" => {
                self.paragraph();
                self.text.push_str("---");
                self.paragraph();
            }
            "pre" => {
                self.paragraph();
                self.text.push_str("```\n");
                self.preformatted = true;
            }
            "code" if !self.preformatted => self.text.push('`'),
            "strong" | "b" => self.text.push_str("**"),
            "em" | "i" => self.text.push('*'),
            "a" => {
                let target = attribute(tag, "href").unwrap_or_default();
                let target = if target.starts_with("http") || target.starts_with('/') {
                    target
                } else {
                    String::new()
                };
                if !target.is_empty() {
                    self.text.push('[');
                }
                self.links.push(target);
            }
            "img" => {
                if let Some(words) = attribute(tag, "alt").filter(|words| !words.trim().is_empty()) {
                    self.text.push_str(&format!("[image: {}]", words.trim()));
                }
            }
            name if BLOCKS.contains(&name) => self.paragraph(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if self.skipping > 0 {
            self.skipping -= usize::from(name == self.skipped);
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.paragraph(),
            "ul" | "ol" => {
                self.lists.pop();
                self.paragraph();
            }
            "td" | "th" => self.text.push(' '),
            "pre" if self.preformatted => {
                self.preformatted = false;
                self.line();
                self.text.push_str("```");
                self.paragraph();
            }
            "code" if !self.preformatted => self.text.push('`'),
            "strong" | "b" => self.text.push_str("**"),
            "em" | "i" => self.text.push('*'),
            "a" => {
                if let Some(target) = self.links.pop().filter(|target| !target.is_empty()) {
                    self.text.push_str(&format!("]({target})"));
                }
            }
            name if BLOCKS.contains(&name) => self.paragraph(),
            _ => {}
        }
    }

    fn characters(&mut self, characters: &str) {
        if self.skipping > 0 {
            return;
        }
        if self.preformatted {
            self.text.push_str(characters);
            return;
        }
        for c in characters.chars() {
            if !c.is_whitespace() {
                self.text.push(c);
            } else if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
        }
    }

    fn item(&mut self) {
        self.line();
        self.text.push_str(&"  ".repeat(self.lists.len().saturating_sub(1)));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.text.push_str(&format!("{number}. "));
                *number += 1;
            }
            _ => self.text.push_str("- "),
        }
    }

    /// Begins a line, unless one has just begun.
    fn line(&mut self) {
        self.text.truncate(self.text.trim_end_matches(' ').len());
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    /// Begins a paragraph, unless one has just begun.
    fn paragraph(&mut self) {
        self.line();
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    let attribute = tag.attrs.iter().find(|attribute| &*attribute.name.local == name)?;
    Some(attribute.value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn whole(html: &str) -> String {
        let Markdown { text, cut } = markdown(html, LONG);
        assert!(!cut);
        text
    }

    #[test]
    fn pages_become_markdown() {
        let html = "<html><head><title>t</title><script>if (a<b) no()</script></head><body><h1>Hello</h1>\
                    <p>One <a href='https://a/'>link</a> &amp; <b>bold</b>.<p>Two<ul><li>a<li>b</ul>\
                    <ol><li>x</ol><pre>  let a;\n  b</pre><svg><text>no</text></svg>\
                    <table><tr><th>k<th>v<tr><td>1</td><td>2</td></table><!-- no --></body>";
        let text = "# Hello\n\nOne [link](https://a/) & **bold**.\n\nTwo\n- a\n- b\n\n1. x\n\n```\n  let a;\n  b\n```\n\n\
                    | k| v\n| 1 | 2";
        assert_eq!(whole(html), text);
        // Pieces may end anywhere.
        let far = "ö<!-- ö -->".repeat(PIECE_BYTES) + html;
        assert!(whole(&far).ends_with(text));
    }

    #[test]
    fn hostile_pages_cost_no_more_than_their_size() {
        for tag in ["div", "b", "ul><li", "table><tr><td", "a href='/'", "svg", "script"] {
            let html = format!("<{tag}>").repeat(100_000);
            assert!(whole(&html).len() < 10 * html.len());
        }
        let reopened = (0..2000).map(|n| format!("<b a={n}>")).collect::<String>() + &"<p>x".repeat(100_000);
        assert!(whole(&reopened).len() < 1_000_000);
        assert_eq!(whole("</a></ul></pre>x"), "x");
    }

    #[test]
    fn a_page_that_takes_too_long_is_cut() {
        let attributes: String = (0..1_000_000).map(|number| format!(" a{number}")).collect();
        let page = markdown(&format!("<p>before<a{attributes}>after"), Duration::from_millis(200));
        assert_eq!((page.text.as_str(), page.cut), ("before", true));
    }
}
