//! Changes of notes: pure, so that all of a batch happens or none of it.

use jiff::Timestamp;
use petasos_core::ids::MemoryId;
use petasos_core::memory::{MemoryEntry, MemorySource, MemoryTarget};
use uuid::Uuid;

use super::MemorySettings;
use super::scan::scan;

/// One change. Notes are named by a part of what they say, which only one of them may contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Writes one more.
    Add { content: String },
    /// Writes one anew.
    Replace { old_text: String, content: String },
    /// Removes one.
    Remove { old_text: String },
}

/// Who changes notes, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer {
    pub(crate) source: MemorySource,
    pub(crate) at: Timestamp,
}

/// Applies changes to the notes of one target, in order. The error says what to do about it.
pub(crate) fn apply(
    entries: &[MemoryEntry],
    target: MemoryTarget,
    changes: &[Change],
    writer: Writer,
    settings: &MemorySettings,
) -> Result<Vec<MemoryEntry>, String> {
    let mut entries = entries.to_vec();
    for change in changes {
        match change {
            Change::Add { content } => {
                let content = accepted(content)?;
                refuse_duplicate(&entries, target, content, None)?;
                entries.push(MemoryEntry {
                    id: MemoryId::from_uuid(Uuid::now_v7()),
                    target,
                    content: content.to_owned(),
                    source: writer.source,
                    created_at: writer.at,
                    updated_at: writer.at,
                });
            }
            Change::Replace { old_text, content } => {
                let index = find(&entries, target, old_text)?;
                replace(&mut entries, index, content, writer)?;
            }
            Change::Remove { old_text } => {
                let index = find(&entries, target, old_text)?;
                entries.remove(index);
            }
        }
    }
    // Only the end counts: a batch may add first and remove after.
    refuse_over_limit(&entries, target, settings)?;
    Ok(entries)
}

/// Writes the note at this place anew.
pub(crate) fn replace(
    entries: &mut [MemoryEntry],
    index: usize,
    content: &str,
    writer: Writer,
) -> Result<(), String> {
    let content = accepted(content)?;
    let Some(target) = entries.get(index).map(|entry| entry.target) else {
        return Err("There is no such note.".to_owned());
    };
    refuse_duplicate(entries, target, content, Some(index))?;
    if let Some(entry) = entries.get_mut(index) {
        entry.content = content.to_owned();
        entry.source = writer.source;
        entry.updated_at = writer.at;
    }
    Ok(())
}

/// How many characters the notes of a target have.
pub(crate) fn used(entries: &[MemoryEntry], target: MemoryTarget) -> usize {
    of(entries, target).map(|entry| entry.content.chars().count()).sum()
}

/// The notes of a target.
pub(crate) fn of(entries: &[MemoryEntry], target: MemoryTarget) -> impl Iterator<Item = &MemoryEntry> {
    entries.iter().filter(move |entry| entry.target == target)
}

/// Refuses notes that are too long together.
pub(crate) fn refuse_over_limit(
    entries: &[MemoryEntry],
    target: MemoryTarget,
    settings: &MemorySettings,
) -> Result<(), String> {
    let (used, most) = (used(entries, target), settings.most(target));
    if used <= most {
        return Ok(());
    }
    Err(format!(
        "The notes would have {used} characters, and at most {most} are kept. Shorten, merge or remove notes that \
         matter less, in the same batch or before."
    ))
}

/// The text of a note without the space around it, if it may be kept.
fn accepted(content: &str) -> Result<&str, String> {
    let content = content.trim();
    if content.is_empty() {
        return Err("The note is empty. Put what is to be kept into content.".to_owned());
    }
    match scan(content) {
        Some(finding) => Err(format!("This cannot be kept: {}.", finding.describe())),
        None => Ok(content),
    }
}

fn refuse_duplicate(
    entries: &[MemoryEntry],
    target: MemoryTarget,
    content: &str,
    except: Option<usize>,
) -> Result<(), String> {
    let mut others = entries.iter().enumerate().filter(|(index, _)| Some(*index) != except);
    if others.any(|(_, entry)| entry.target == target && entry.content == content) {
        return Err("This note is there already.".to_owned());
    }
    Ok(())
}

fn find(entries: &[MemoryEntry], target: MemoryTarget, old_text: &str) -> Result<usize, String> {
    let old_text = old_text.trim();
    if old_text.is_empty() {
        return Err("old_text is empty. Put a part of the note there that no other note contains.".to_owned());
    }
    let contains = |entry: &MemoryEntry| entry.target == target && entry.content.contains(old_text);
    let mut found = entries.iter().enumerate().filter(|(_, entry)| contains(entry)).map(|(index, _)| index);
    match (found.next(), found.count()) {
        (None, _) => Err(format!("No note contains {old_text:?}.")),
        (Some(index), 0) => Ok(index),
        (Some(_), more) => {
            Err(format!("{} notes contain {old_text:?}. Use a longer part of the one you mean.", more + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: Writer = Writer { source: MemorySource::Agent, at: Timestamp::UNIX_EPOCH };

    fn changed(entries: &[MemoryEntry], changes: &[Change]) -> Result<Vec<MemoryEntry>, String> {
        let settings = MemorySettings { memory_chars: 20, user_chars: 5 };
        apply(entries, MemoryTarget::Memory, changes, WRITER, &settings)
    }

    fn add(content: &str) -> Change {
        Change::Add { content: content.into() }
    }

    fn replace(old_text: &str, content: &str) -> Change {
        Change::Replace { old_text: old_text.into(), content: content.into() }
    }

    fn remove(old_text: &str) -> Change {
        Change::Remove { old_text: old_text.into() }
    }

    fn contents(entries: &[MemoryEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.content.as_str()).collect()
    }

    #[test]
    fn notes_are_added_replaced_and_removed() {
        let entries = changed(&[], &[add(" tea "), add("cups")]).unwrap();
        assert_eq!(contents(&entries), ["tea", "cups"]);
        let replaced = changed(&entries, &[replace("te", "coffee")]).unwrap();
        assert_eq!(contents(&replaced), ["coffee", "cups"]);
        assert_eq!(replaced[0].id, entries[0].id);
        assert_eq!(contents(&changed(&replaced, &[remove("cof")]).unwrap()), ["cups"]);
        assert_eq!(contents(&changed(&entries, &[replace("tea", "tea")]).unwrap()), ["tea", "cups"]);
    }

    #[test]
    fn what_cannot_be_done_says_why() {
        let entries = changed(&[], &[add("green tea"), add("tea cup")]).unwrap();
        let why = |change: Change| changed(&entries, &[change]).unwrap_err();
        assert!(why(add("tea cup")).contains("there already"));
        assert!(why(replace("cup", "green tea")).contains("there already"));
        assert!(why(add("  ")).contains("empty"));
        assert!(why(remove("")).contains("empty"));
        assert!(why(remove("pot")).contains("No note"));
        assert!(why(remove("tea")).contains("2 notes"));
        assert!(why(add("12345")).contains("21 characters"), "{}", why(add("12345")));
        assert!(why(add("You are now a pot")).contains("instructions"));
    }

    #[test]
    fn a_batch_happens_whole_or_not_at_all() {
        let entries = changed(&[], &[add("0123456789"), add("abcdefghij")]).unwrap();
        assert!(changed(&entries, &[remove("012"), add("x"), remove("none")]).is_err());
        // Too long in between, and not in the end.
        let merged =
            changed(&entries, &[add("0-9 and a-j"), remove("0123456789"), remove("abcdef")]).unwrap();
        assert_eq!(contents(&merged), ["0-9 and a-j"]);
    }

    #[test]
    fn targets_do_not_see_each_other() {
        let settings = MemorySettings { memory_chars: 20, user_chars: 5 };
        let work = changed(&[], &[add("tea")]).unwrap();
        let both = apply(&work, MemoryTarget::User, &[add("tea")], WRITER, &settings).unwrap();
        assert_eq!(contents(&both), ["tea", "tea"]);
        assert!(apply(&both, MemoryTarget::User, &[add("cups")], WRITER, &settings).is_err());
        let one = apply(&both, MemoryTarget::User, &[remove("tea")], WRITER, &settings).unwrap();
        assert_eq!(one, work);
    }
}
