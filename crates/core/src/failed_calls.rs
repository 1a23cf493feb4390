//! Counts how often a turn has made the same failing call.
//!
//! Two calls are the same if they name the same tool and have the same arguments. Calls of one answer count once: the
//! model has not read the first result when it makes the second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// At this number of failures the model is told that it repeats itself.
const TOLD_AT: u32 = 3;
/// At this number of failures the turn ends.
const ENDS_AT: u32 = 5;
/// How many different calls are remembered. A turn that fails in more ways is not in a loop.
const MAX_REMEMBERED: usize = 64;

/// The failing calls of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FailedCalls(BTreeMap<u64, Failures>);

/// How often one call has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Failures {
    tool: String,
    count: u32,
    /// The model call that made it last.
    made_by: u32,
}

impl FailedCalls {
    /// Whether nothing has failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the end of a call into account that the model call `made_by` asked for. A success starts the count anew.
    pub fn note(&mut self, key: u64, tool: &str, failed: bool, made_by: u32) {
        if !failed {
            self.0.remove(&key);
        } else if let Some(failures) = self.0.get_mut(&key) {
            if failures.made_by != made_by {
                failures.count = failures.count.saturating_add(1);
                failures.made_by = made_by;
            }
        } else if self.0.len() < MAX_REMEMBERED {
            self.0.insert(key, Failures { tool: tool.to_owned(), count: 1, made_by });
        }
    }

    /// What the model is told with the result of a call that failed, if it repeats itself.
    pub fn warning(&self, key: u64) -> Option<String> {
        let count = self.0.get(&key).map_or(0, |failures| failures.count);
        (count >= TOLD_AT).then(|| {
            format!(
                "[This call has failed {count} times with the same arguments. Do not repeat it: change the arguments, use \
                 another tool, or tell the user what is in the way. The turn ends at {ENDS_AT} failures.]"
            )
        })
    }

    /// The tool of a call that has failed so often that the turn must end.
    pub fn looping(&self) -> Option<&str> {
        self.0.values().find(|failures| failures.count >= ENDS_AT).map(|failures| failures.tool.as_str())
    }

    /// Why a turn ends that repeats a call of this tool.
    pub fn explain(tool: &str) -> String {
        format!(
            "The model made the same call of {tool} {ENDS_AT} times, and it failed each time. Look at the last results, then \
             send another message that says how to go on."
        )
    }
}

/// Names a call by its tool and arguments. The value is stored, so it must not change between versions: FNV-1a.
pub fn call_key(tool: &str, input: &Map<String, Value>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let arguments = serde_json::to_string(input).unwrap_or_default();
    let bytes = tool.bytes().chain([0]).chain(arguments.bytes());
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(input: &Value) -> u64 {
        call_key("read_file", input.as_object().unwrap())
    }

    #[test]
    fn the_third_failure_warns_and_the_fifth_ends() {
        let (mut failed, same) = (FailedCalls::default(), key(&json!({ "path": "." })));
        let mut seen = Vec::new();
        for made_by in 1..=5 {
            failed.note(same, "read_file", true, made_by);
            seen.push((failed.warning(same).is_some(), failed.looping().is_some()));
        }
        let (quiet, warns, ends) = ((false, false), (true, false), (true, true));
        assert_eq!(seen, [quiet, quiet, warns, warns, ends]);
    }

    #[test]
    fn other_arguments_and_successes_are_no_repetition() {
        let mut failed = FailedCalls::default();
        for made_by in 1..=40 {
            failed.note(key(&json!({ "path": made_by })), "read_file", true, made_by);
            failed.note(key(&json!({})), "read_file", made_by % 4 != 0, made_by);
        }
        assert_eq!(failed.looping(), None);
    }

    #[test]
    fn parallel_calls_of_one_answer_count_once() {
        let mut failed = FailedCalls::default();
        (0..50).for_each(|_| failed.note(1, "read_file", true, 7));
        assert_eq!(failed.warning(1), None);
    }

    #[test]
    fn counts_outlive_a_restart() {
        let mut failed = FailedCalls::default();
        (1..=4).for_each(|made_by| failed.note(7, "read_file", true, made_by));
        let stored = serde_json::to_vec(&failed).unwrap();
        let mut read: FailedCalls = serde_json::from_slice(&stored).unwrap();
        assert_eq!(read, failed);
        read.note(7, "read_file", true, 5);
        assert_eq!(read.looping(), Some("read_file"));
    }

    #[test]
    fn stored_keys_keep_their_values() {
        assert_eq!(key(&json!({ "path": "." })), 6_008_370_601_808_334_547);
    }
}
