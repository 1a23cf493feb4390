//! Consent: which commands somebody agreed to have run at which event.
//!
//! A command runs with all the rights of whoever started the server, so it needs a yes before its first use. The yes is
//! for the exact pair of event and command; a script may be edited later without another one.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::configured::{HookSpec, Place};
use crate::event::HookEvent;

/// One yes. Fields are in the order of the alphabet, which is that of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// When it was given.
    #[serde(default)]
    pub approved_at: String,
    /// The command, as it is configured.
    pub command: String,
    /// The event.
    pub event: String,
    /// When the script had last been changed by then.
    #[serde(default)]
    pub script_mtime_at_approval: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    #[serde(default)]
    approvals: Vec<Consent>,
}

/// The file that remembers consent.
#[derive(Debug, Clone)]
pub struct Allowlist {
    path: PathBuf,
}

impl Allowlist {
    /// The file at a path, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Allowlist { path }
    }

    /// Every yes in the file. A file that cannot be read has none.
    pub fn read(&self) -> Vec<Consent> {
        self.try_read().unwrap_or_else(|error| {
            tracing::warn!(%error, "the allowlist of hooks counts as empty");
            Vec::new()
        })
    }

    fn try_read(&self) -> io::Result<Vec<Consent>> {
        let unreadable = |kind, problem: &dyn fmt::Display| {
            let path = self.path.display();
            io::Error::new(kind, format!("{path} cannot be read: {problem}; repair it or remove it"))
        };
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error.kind(), &error)),
        };
        let contents: Contents =
            serde_json::from_slice(&text).map_err(|error| unreadable(io::ErrorKind::InvalidData, &error))?;
        Ok(contents.approvals)
    }

    /// The yes to a command at an event, if there is one.
    pub fn find(&self, event: HookEvent, command: &str) -> Option<Consent> {
        self.read().into_iter().find(|consent| consent.event == event.name() && consent.command == command)
    }

    /// Remembers a yes, in place of an earlier one to the same.
    pub fn add(&self, event: HookEvent, command: &str, script: Option<&Path>) -> io::Result<()> {
        let consent = Consent {
            approved_at: written(Timestamp::now()),
            command: command.to_owned(),
            event: event.name().to_owned(),
            script_mtime_at_approval: script.and_then(modified_at),
        };
        self.change(|all| {
            all.retain(|other| other.event != consent.event || other.command != consent.command);
            all.push(consent);
        })
    }

    /// Forgets every yes to a command, at whatever event. Returns how many there were.
    pub fn revoke(&self, command: &str) -> io::Result<usize> {
        let mut revoked = 0;
        self.change(|all| {
            let before = all.len();
            all.retain(|consent| consent.command != command);
            revoked = before - all.len();
        })?;
        Ok(revoked)
    }

    /// Changes the file while nobody else does, whole or not at all.
    fn change(&self, change: impl FnOnce(&mut Vec<Consent>)) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut lock = self.path.clone().into_os_string();
        lock.push(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(lock)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        // What cannot be read must not be written over: it may hold consents that a person can still save.
        let mut approvals = self.try_read()?;
        change(&mut approvals);
        let mut text = serde_json::to_string_pretty(&Contents { approvals })?;
        text.push('\n');
        // It is nobody else's business, and a draft made this way is private.
        let mut draft = tempfile::NamedTempFile::new_in(directory)?;
        draft.write_all(text.as_bytes())?;
        draft.as_file().sync_all()?;
        draft.persist(&self.path)?;
        Ok(())
    }
}

/// Which hooks may run.
#[derive(Debug, Default)]
pub struct Admission {
    /// Those that may.
    pub admitted: Vec<HookSpec>,
    /// Those that nobody has agreed to.
    pub refused: Vec<HookSpec>,
}

/// Finds out which hooks may run: addresses, commands that somebody agreed to, and those that somebody agrees to now.
/// `accept` is a yes to all; `ask` asks a person, if there is one.
pub fn admitted(
    hooks: Vec<HookSpec>,
    allowlist: &Allowlist,
    place: &Place,
    accept: bool,
    mut ask: impl FnMut(&HookSpec) -> Option<bool>,
) -> Admission {
    let mut admission = Admission::default();
    for hook in hooks {
        let (event, command) = (hook.event, hook.target.command());
        let Some(command) = command.filter(|command| allowlist.find(event, command).is_none()) else {
            admission.admitted.push(hook);
            continue;
        };
        if !accept {
            match ask(&hook) {
                Some(true) => {}
                Some(false) => {
                    admission.refused.push(hook);
                    continue;
                }
                None => {
                    tracing::warn!(
                        %event,
                        command,
                        "a hook is left out: nobody has agreed to it yet, and there is no terminal to ask on. \
                         --accept-hooks, PETASOS_ACCEPT_HOOKS=1 or hooks_auto_accept: true agrees to all"
                    );
                    admission.refused.push(hook);
                    continue;
                }
            }
        }
        let script = place.script(&place.split(command).unwrap_or_default());
        if let Err(error) = allowlist.add(event, command, script.as_deref()) {
            tracing::warn!(%event, command, %error, "the consent to a hook cannot be kept; it counts until the end");
        }
        admission.admitted.push(hook);
    }
    admission
}

impl Consent {
    /// Whether the script was changed after somebody agreed to it. The time was written down to the second here, and to
    /// the microsecond by others, so that less than a second is no difference.
    pub fn has_drifted(&self, script: &Path) -> bool {
        let (Some(approved), Some(now)) = (&self.script_mtime_at_approval, modified(script)) else {
            return false;
        };
        match approved.parse::<Timestamp>() {
            Ok(approved) => now.duration_since(approved).abs() >= SignedDuration::from_secs(1),
            Err(_) => *approved != written(now),
        }
    }
}

/// When a file was last changed, as it is written down.
fn modified_at(path: &Path) -> Option<String> {
    modified(path).map(written)
}

fn modified(path: &Path) -> Option<Timestamp> {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    Timestamp::try_from(modified).ok()
}

fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whether a setting accepts all hooks: `true`, or a word for it. A number is none.
pub fn accepts(setting: &serde_json::Value) -> bool {
    match setting {
        serde_json::Value::Bool(accepts) => *accepts,
        serde_json::Value::String(word) => is_yes(word),
        _ => false,
    }
}

/// Whether a word means yes.
pub fn is_yes(word: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&word.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_yes_is_for_one_event_and_one_command_until_it_is_revoked() {
        let home = tempfile::tempdir().unwrap();
        let list = Allowlist::new(home.path().join("shell-hooks-allowlist.json"));
        assert_eq!(list.read(), []);
        list.add(HookEvent::PreToolCall, "a.sh", None).unwrap();
        list.add(HookEvent::PreToolCall, "a.sh", None).unwrap();
        list.add(HookEvent::PostToolCall, "a.sh", None).unwrap();
        list.add(HookEvent::PreToolCall, "b.sh", Some(home.path())).unwrap();
        assert_eq!(list.read().len(), 3, "the second yes took the place of the first");
        assert!(list.find(HookEvent::PreToolCall, "a.sh --fast").is_none());
        assert!(list.find(HookEvent::PreLlmCall, "a.sh").is_none());
        let consent = list.find(HookEvent::PreToolCall, "b.sh").unwrap();
        assert!(consent.script_mtime_at_approval.is_some_and(|time| time.ends_with('Z')));
        assert_eq!(list.revoke("a.sh").unwrap(), 2);
        assert_eq!(list.revoke("a.sh").unwrap(), 0);
        assert_eq!(list.read().len(), 1);
    }

    #[test]
    fn times_of_another_precision_are_no_change_of_the_script() {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("a.sh");
        std::fs::write(&script, "").unwrap();
        let list = Allowlist::new(home.path().join("list.json"));
        list.add(HookEvent::PreToolCall, "a.sh", Some(&script)).unwrap();
        let mut consent = list.find(HookEvent::PreToolCall, "a.sh").unwrap();
        assert!(!consent.has_drifted(&script));
        let exact = modified(&script).unwrap();
        let micros = exact.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        for (approved, drifted) in [
            (micros, false),
            (exact.strftime("%Y-%m-%dT%H:%M:%S%.9f+00:00").to_string(), false),
            (written(exact - SignedDuration::from_secs(5)), true),
            ("2020-01-01T00:00:00.123456Z".to_owned(), true),
            ("nonsense".to_owned(), true),
        ] {
            consent.script_mtime_at_approval = Some(approved.clone());
            assert_eq!(consent.has_drifted(&script), drifted, "{approved}");
        }
        consent.script_mtime_at_approval = None;
        assert!(!consent.has_drifted(&script));
    }

    #[test]
    fn a_damaged_file_has_no_consents_and_is_left_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("list.json");
        let list = Allowlist::new(path.clone());
        for text in ["", "{\"approvals\": 7}", "nonsense"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(list.read(), [], "{text}");
            for refused in [list.add(HookEvent::PreToolCall, "a.sh", None).map(|()| 0), list.revoke("a.sh")] {
                assert!(refused.unwrap_err().to_string().contains("list.json"));
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn many_can_say_yes_at_once() {
        let home = tempfile::tempdir().unwrap();
        let list = Allowlist::new(home.path().join("list.json"));
        std::thread::scope(|scope| {
            for number in 0..16 {
                let list = list.clone();
                scope.spawn(move || list.add(HookEvent::PreLlmCall, &format!("{number}.sh"), None).unwrap());
            }
        });
        assert_eq!(list.read().len(), 16);
    }

    #[test]
    fn only_a_clear_yes_accepts() {
        for yes in [json!(true), json!("true"), json!("YES"), json!("1"), json!("on")] {
            assert!(accepts(&yes), "{yes}");
        }
        for no in [json!(false), json!("false"), json!(1), json!(null), json!(["true"])] {
            assert!(!accepts(&no), "{no}");
        }
    }
}
