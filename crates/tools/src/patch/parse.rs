//! Reads a patch of several files.

/// What is to be done with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, move_to: Option<String>, hunks: Vec<Hunk> },
}

/// One place of a file that changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// Lines above the place, such as the function that it is in.
    pub(super) anchors: Vec<String>,
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
    /// Whether it is at the end of the file.
    pub(super) at_end: bool,
}

impl Hunk {
    fn is_empty(&self) -> bool {
        self.old.is_empty() && self.new.is_empty()
    }
}

/// The paths that a patch names.
pub(super) fn paths(text: &str) -> Result<Vec<String>, String> {
    let changes = parse(text)?.into_iter();
    Ok(changes
        .map(|change| match change {
            Change::Add { path, .. } | Change::Delete { path } | Change::Update { path, .. } => path,
        })
        .collect())
}

/// Reads a patch.
pub(super) fn parse(text: &str) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match line.trim_end() {
            "*** Begin Patch" | "*** End Patch" => {}
            line if line.starts_with("*** ") => header(&mut changes, line, number)?,
            _ => body(&mut changes, line, number)?,
        }
    }
    for change in &mut changes {
        if let Change::Update { path, move_to, hunks } = change {
            hunks.retain(|hunk| !hunk.is_empty());
            if hunks.is_empty() && move_to.is_none() {
                return Err(format!("The patch of {path} changes nothing."));
            }
        }
    }
    if changes.is_empty() {
        return Err("The patch names no file. Write '*** Update File: path' before its changes.".to_owned());
    }
    Ok(changes)
}

fn header(changes: &mut Vec<Change>, line: &str, number: usize) -> Result<(), String> {
    let named = |prefix: &str| line.strip_prefix(prefix).map(|path| path.trim().to_owned());
    if let Some(path) = named("*** Add File:") {
        changes.push(Change::Add { path, content: String::new() });
    } else if let Some(path) = named("*** Delete File:") {
        changes.push(Change::Delete { path });
    } else if let Some(path) = named("*** Update File:") {
        changes.push(Change::Update { path, move_to: None, hunks: vec![Hunk::default()] });
    } else if let (Some(to), Some(Change::Update { move_to, .. })) =
        (named("*** Move to:"), changes.last_mut())
    {
        *move_to = Some(to);
    } else if let ("*** End of File", Some(Change::Update { hunks, .. })) = (line, changes.last_mut()) {
        if let Some(hunk) = hunks.last_mut() {
            hunk.at_end = true;
        }
    } else {
        return Err(format!("Line {number} of the patch is not understood: {line}"));
    }
    Ok(())
}

fn body(changes: &mut [Change], line: &str, number: usize) -> Result<(), String> {
    match changes.last_mut() {
        None if line.trim().is_empty() => Ok(()),
        None => Err(format!("Line {number} of the patch comes before any '*** Update File: path'.")),
        Some(Change::Delete { .. }) if line.trim().is_empty() => Ok(()),
        Some(Change::Delete { path }) => Err(format!("{path} is deleted; line {number} has no place in it.")),
        Some(Change::Add { content, .. }) => {
            // Without the sign it is still clear what is meant.
            content.push_str(line.strip_prefix('+').unwrap_or(line));
            content.push('\n');
            Ok(())
        }
        Some(Change::Update { hunks, .. }) => {
            update_line(hunks, line);
            Ok(())
        }
    }
}

fn update_line(hunks: &mut Vec<Hunk>, line: &str) {
    if let Some(anchor) = line.strip_prefix("@@") {
        if hunks.last().is_none_or(|hunk| !hunk.is_empty()) {
            hunks.push(Hunk::default());
        }
        let anchor = anchor.trim().trim_end_matches("@@").trim();
        // Line numbers, as other formats have them, say nothing that can be relied on.
        if let (false, Some(hunk)) = (anchor.is_empty() || anchor.starts_with(['-', '+']), hunks.last_mut()) {
            hunk.anchors.push(anchor.to_owned());
        }
        return;
    }
    let Some(hunk) = hunks.last_mut() else { return };
    let rest = line.get(1..).unwrap_or_default().to_owned();
    match line.chars().next() {
        Some('+') => hunk.new.push(rest),
        Some('-') => hunk.old.push(rest),
        Some(' ') => {
            hunk.old.push(rest.clone());
            hunk.new.push(rest);
        }
        // A context line that lost its space, often an empty one.
        _ => {
            hunk.old.push(line.to_owned());
            hunk.new.push(line.to_owned());
        }
    }
}
