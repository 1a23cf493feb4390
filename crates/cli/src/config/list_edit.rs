//! Changes one list of a section of `config.yaml` and leaves every other byte as it is.
//!
//! It knows the two ways in which people write short lists. The result is read again and compared with what it should
//! say; if anything else is different, nothing is changed.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

/// Whether an item is to be in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// It is.
    In,
    /// It is not.
    Out,
}

/// The text with `item` in the list `section.list`, or without it.
pub(crate) fn edit(text: &str, section: &str, list: &str, item: &str, want: Want) -> Result<String> {
    let before = read(text).context("the configuration cannot be read")?;
    let items = |value: &Value| value[section][list].as_array().cloned().unwrap_or_default();
    let mut wanted = items(&before);
    if wanted.iter().any(|known| known == item) == (want == Want::In) {
        return Ok(text.to_owned());
    }
    match want {
        Want::In => wanted.push(item.into()),
        Want::Out => wanted.retain(|known| known != item),
    }
    let unfolded = unfolded(text, section, &before[section]);
    let edited = Document::new(unfolded.as_deref().unwrap_or(text)).edited(section, list, item, want);
    let after = edited.as_deref().and_then(|edited| read(edited).ok());
    let matches = |after: &Value| {
        items(after) == wanted && without(after, section, list) == without(&before, section, list)
    };
    match (edited, after) {
        (Some(edited), Some(after)) if matches(&after) => Ok(edited),
        _ => bail!(
            "the configuration is written in a way that cannot be edited here; set {section}.{list} to {} yourself",
            Value::Array(wanted)
        ),
    }
}

/// The text with a section that stands on one line in braces written line by line, if it does so without a comment.
fn unfolded(text: &str, section: &str, value: &Value) -> Option<String> {
    let document = Document::new(text);
    let head = document.find(0..document.lines.len(), 0, section)?;
    let written = value_of(document.lines[head]);
    let fields = value.as_object().filter(|fields| !fields.is_empty())?;
    if !written.starts_with('{') || !written.ends_with('}') || written.contains('#') {
        return None;
    }
    let end = document.end;
    // JSON is YAML.
    let lines: String =
        fields.iter().map(|(key, value)| format!("  {}: {value}{end}", scalar(key))).collect();
    Some(document.with(head..head + 1, &format!("{section}:{end}{lines}")))
}

fn read(text: &str) -> Result<Value> {
    let value: Option<Value> = crate::yaml::parse(text, "config.yaml")?;
    Ok(value.unwrap_or_else(|| json!({})))
}

/// Everything but the list, without a section that is empty then.
fn without(value: &Value, section: &str, list: &str) -> Map<String, Value> {
    let mut all = value.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(inner)) = all.get_mut(section) {
        inner.remove(list);
    }
    all.retain(|key, inner| key != section || inner.as_object().is_some_and(|inner| !inner.is_empty()));
    all
}

/// The lines of a file, each with its end.
struct Document<'a> {
    lines: Vec<&'a str>,
    end: &'static str,
}

impl<'a> Document<'a> {
    fn new(text: &'a str) -> Self {
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Document { lines: text.split_inclusive('\n').collect(), end }
    }

    fn edited(&self, section: &str, list: &str, item: &str, want: Want) -> Option<String> {
        let Some(head) = self.find(0..self.lines.len(), 0, section) else {
            let end = self.end;
            let break_before =
                if self.lines.last().is_none_or(|line| line.ends_with('\n')) { "" } else { end };
            let added = format!("{break_before}{section}:{end}  {list}:{end}    - {}{end}", scalar(item));
            return (want == Want::In).then(|| self.with(self.lines.len()..self.lines.len(), &added));
        };
        let body = self.body(head, 0);
        let first = body.clone().find(|&line| !is_blank(self.lines[line]));
        let depth = first.map_or(2, |line| indent(self.lines[line]));
        let Some(key) = self.find(body, depth, list) else {
            return (want == Want::In).then(|| self.with_new_list(head, depth, list, item));
        };
        let value = value_of(self.lines[key]);
        if let Some(inner) = value.strip_prefix('[') {
            let inner = &inner[..inner.rfind(']')?];
            return self.with_flow_item(key, inner, item, want);
        }
        let items: Vec<usize> = self.items(key, depth);
        match want {
            Want::In => {
                let depth = items.first().map_or(depth + 2, |&line| indent(self.lines[line]));
                let line = format!("{}- {}{}", " ".repeat(depth), scalar(item), self.end);
                let after = items.last().copied().unwrap_or(key) + 1;
                Some(self.with(after..after, &line))
            }
            Want::Out => {
                let is_it = |line: &usize| value_of_item(self.lines[*line]).is_some_and(|text| text == item);
                let line = items.into_iter().find(is_it)?;
                Some(self.with(line..line + 1, ""))
            }
        }
    }

    /// A section that has no such list yet. It is begun anew if it said that it is empty.
    fn with_new_list(&self, head: usize, depth: usize, list: &str, item: &str) -> String {
        let (margin, end) = (" ".repeat(depth), self.end);
        let added = format!("{margin}{list}:{end}{margin}  - {}{end}", scalar(item));
        match value_of(self.lines[head]) {
            "" => self.with(head + 1..head + 1, &added),
            _ => {
                let name = self.lines[head].split(':').next().unwrap_or_default();
                self.with(head..head + 1, &format!("{name}:{end}{added}"))
            }
        }
    }

    fn with_flow_item(&self, key: usize, inner: &str, item: &str, want: Want) -> Option<String> {
        let changed = match want {
            Want::In if inner.trim().is_empty() => scalar(item),
            Want::In => format!("{}, {}", inner.trim_end(), scalar(item)),
            Want::Out => {
                let items: Vec<String> = serde_saphyr::from_str(&format!("[{inner}]")).ok()?;
                let rest = items.iter().filter(|known| *known != item);
                rest.map(|item| scalar(item)).collect::<Vec<_>>().join(", ")
            }
        };
        let line = self.lines[key];
        let start = line.find('[')? + 1;
        let line = format!("{}{changed}{}", &line[..start], &line[start + inner.len()..]);
        Some(self.with(key..key + 1, &line))
    }

    /// The line of a key at a depth.
    fn find(&self, lines: std::ops::Range<usize>, depth: usize, key: &str) -> Option<usize> {
        lines.into_iter().find(|&line| {
            let text = self.lines[line];
            let rest = text.trim_start().strip_prefix(key).map(str::trim_start);
            indent(text) == depth && rest.is_some_and(|rest| rest.starts_with(':'))
        })
    }

    /// The lines that belong to a key.
    fn body(&self, head: usize, depth: usize) -> std::ops::Range<usize> {
        let rest = head + 1..self.lines.len();
        let ends = |&line: &usize| !is_blank(self.lines[line]) && indent(self.lines[line]) <= depth;
        head + 1..rest.clone().find(ends).unwrap_or(rest.end)
    }

    /// The lines of the items of a list. They may stand as far left as its key.
    fn items(&self, key: usize, depth: usize) -> Vec<usize> {
        let mut items = Vec::new();
        for line in key + 1..self.lines.len() {
            let text = self.lines[line];
            if is_blank(text) {
                continue;
            }
            if indent(text) < depth || !text.trim_start().starts_with('-') {
                break;
            }
            items.push(line);
        }
        items
    }

    fn with(&self, replaced: std::ops::Range<usize>, by: &str) -> String {
        let (before, after) = (&self.lines[..replaced.start], &self.lines[replaced.end..]);
        let before = before.concat();
        let needs_end =
            !by.is_empty() && !before.is_empty() && !before.ends_with('\n') && !by.starts_with(['\n', '\r']);
        format!("{before}{}{by}{}", if needs_end { self.end } else { "" }, after.concat())
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let text = line.trim();
    text.is_empty() || text.starts_with('#')
}

/// What stands behind the key of a line, without a comment.
fn value_of(line: &str) -> &str {
    let value = line.split_once(':').map(|(_, value)| value.trim()).unwrap_or_default();
    if value.starts_with('#') { "" } else { value }
}

/// The text of an item.
fn value_of_item(line: &str) -> Option<String> {
    serde_saphyr::from_str::<Vec<String>>(line.trim()).ok()?.pop()
}

/// An item as YAML.
fn scalar(item: &str) -> String {
    let is_plain = matches!(serde_saphyr::from_str::<Value>(item), Ok(Value::String(text)) if text == item);
    let is_safe = item.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
    if is_plain && is_safe { item.to_owned() } else { Value::from(item).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, item: &str, want: Want, after: &str) {
        assert_eq!(edit(before, "plugins", "enabled", item, want).unwrap(), after);
    }

    #[test]
    fn an_item_is_added_where_the_list_is() {
        check("", "a", Want::In, "plugins:\n  enabled:\n    - a\n");
        check("# mine\nlisten: x", "a", Want::In, "# mine\nlisten: x\nplugins:\n  enabled:\n    - a\n");
        check("plugins:\nlisten: x\n", "a", Want::In, "plugins:\n  enabled:\n    - a\nlisten: x\n");
        check("plugins: {}\n", "a", Want::In, "plugins:\n  enabled:\n    - a\n");
        check(
            "plugins:\n    python: p # here\n",
            "a",
            Want::In,
            "plugins:\n    enabled:\n      - a\n    python: p # here\n",
        );
        check(
            "plugins:\n  enabled:\n  # first\n  - b # why\n\n  disabled: [c]\nlog: {}\n",
            "a",
            Want::In,
            "plugins:\n  enabled:\n  # first\n  - b # why\n  - a\n\n  disabled: [c]\nlog: {}\n",
        );
        check("plugins:\n  enabled: [ b ] # x\n", "a", Want::In, "plugins:\n  enabled: [ b, a] # x\n");
        check("plugins:\r\n  enabled: []\r\n", "1.0", Want::In, "plugins:\r\n  enabled: [\"1.0\"]\r\n");
        check("plugins:\n  enabled: [a]", "a", Want::In, "plugins:\n  enabled: [a]");
    }

    #[test]
    fn an_item_is_removed_and_nothing_else() {
        check(
            "plugins:\n  enabled:\n    - a\n    - \"b\"\n    - c\n",
            "b",
            Want::Out,
            "plugins:\n  enabled:\n    - a\n    - c\n",
        );
        check("plugins:\n  enabled: [a, b]\nx: 1\n", "a", Want::Out, "plugins:\n  enabled: [b]\nx: 1\n");
        check("listen: x\n", "a", Want::Out, "listen: x\n");
        check(
            "plugins: {enabled: [a, b], hook_callback_timeout: 3}\nx: 1\n",
            "a",
            Want::Out,
            "plugins:\n  enabled: [b]\n  hook_callback_timeout: 3\nx: 1\n",
        );
    }

    #[test]
    fn what_cannot_be_edited_is_left_alone_and_said() {
        for text in [
            "plugins: {enabled: [b]} # mine\n",
            "plugins:\n  enabled: [b,\n    c]\n",
            "plugins: &x\n  enabled: *y\n",
        ] {
            let refused = edit(text, "plugins", "enabled", "a", Want::In);
            assert!(refused.is_err(), "{text:?}: {refused:?}");
        }
    }
}
