//! The ids that tool calls have in a request.
//!
//! A vendor gets its own id of a call back. Calls without one (of another provider, or from outside) get an id that is
//! derived from ours and fits every vendor. An id stays the same over requests, because it depends only on the call and
//! on the calls before it.

use std::collections::{HashMap, HashSet};

use petasos_core::model::{AssistantPart, Message, Opaque};
use serde_json::json;

/// Mistral takes ids of exactly so many letters and digits, which no other vendor minds.
const LENGTH: usize = 9;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What is kept of a call so that its vendor's id can go back.
pub(super) fn kept(format: &str, id: &str) -> Opaque {
    Opaque { format: format.to_owned(), provider: None, data: json!({ "id": id }) }
}

/// The ids of all calls in a conversation, handed out in its order: an id of ours may stand there twice, because
/// applications bring their own.
pub(super) struct CallIds<'a> {
    by_own: HashMap<&'a str, Occurrences>,
}

/// The ids of all calls that have one id of ours.
#[derive(Default)]
struct Occurrences {
    ids: Vec<String>,
    /// How many of them were handed out for calls, and for results.
    calls: usize,
    results: usize,
}

impl<'a> CallIds<'a> {
    /// The ids for a format: the vendor's own where the call carries one, the field `id` of its opaque data.
    pub(super) fn of(messages: &'a [Message], format: &str) -> Self {
        let (mut by_own, mut taken) = (HashMap::<_, Occurrences>::new(), HashSet::new());
        let parts = messages.iter().flat_map(|message| match message {
            Message::Assistant(parts) => parts.as_slice(),
            Message::User(_) | Message::ToolResults(_) => &[],
        });
        for part in parts {
            let AssistantPart::ToolCall { id, opaque, .. } = part else { continue };
            // Some vendors count from 0 in each answer, so that only the first use of an id is certain to be unique.
            let vendors = opaque.as_ref().and_then(|opaque| vendor_id(opaque, format));
            let fitting = vendors.filter(|vendors| !taken.contains(*vendors));
            let chosen = fitting.map_or_else(|| derived(id, &taken), str::to_owned);
            taken.insert(chosen.clone());
            by_own.entry(id.as_str()).or_default().ids.push(chosen);
        }
        CallIds { by_own }
    }

    /// The id of the next call that has this id of ours.
    pub(super) fn next_call(&mut self, own: &str) -> String {
        self.next(own, |occurrences| &mut occurrences.calls)
    }

    /// The id that the next result for this id of ours refers to.
    pub(super) fn next_result(&mut self, own: &str) -> String {
        self.next(own, |occurrences| &mut occurrences.results)
    }

    fn next(&mut self, own: &str, count: impl Fn(&mut Occurrences) -> &mut usize) -> String {
        let next = self.by_own.get_mut(own).and_then(|occurrences| {
            let index = *count(occurrences);
            *count(occurrences) += 1;
            occurrences.ids.get(index).cloned()
        });
        next.unwrap_or_else(|| derived(own, &HashSet::new()))
    }
}

fn vendor_id<'a>(opaque: &'a Opaque, format: &str) -> Option<&'a str> {
    let is_ours = opaque.format == format;
    opaque.data["id"].as_str().filter(|id| is_ours && !id.is_empty())
}

/// An id made from ours that is not taken yet.
fn derived(own: &str, taken: &HashSet<String>) -> String {
    let mut hash = fnv1a(own.as_bytes());
    loop {
        let id = letters(hash);
        if !taken.contains(&id) {
            return id;
        }
        hash = hash.wrapping_add(1);
    }
}

/// A hash that is the same in every process and version, which the hashes of the standard library are not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn letters(mut number: u64) -> String {
    let base = ALPHABET.len() as u64;
    let mut letter = || {
        let index = usize::try_from(number % base).unwrap_or_default();
        number /= base;
        char::from(ALPHABET[index])
    };
    std::iter::repeat_with(&mut letter).take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn call(own: &str, vendors: Option<(&str, &str)>) -> Message {
        let opaque = vendors.map(|(format, id)| Opaque {
            format: format.to_owned(),
            provider: None,
            data: json!({ "id": id }),
        });
        let (id, name) = (own.to_owned(), "look".to_owned());
        Message::Assistant(vec![AssistantPart::ToolCall { id, name, input: Map::new(), opaque }])
    }

    #[test]
    fn vendor_ids_go_back_and_others_fit_every_vendor() {
        let own = ["mcptoolu_01890a5d-ac96-774b-bcce-b302099a8057", "tu_2", "tu_3", "tu_4"];
        let messages = [
            call(own[0], None),
            call(own[1], Some(("openai-chat", "call_vX1"))),
            call(own[2], Some(("anthropic", "toolu_1"))),
            call(own[3], Some(("openai-chat", ""))),
        ];
        let mut ids = CallIds::of(&messages, "openai-chat");
        assert_eq!(ids.next_call(own[1]), "call_vX1");
        for own in [own[0], own[2], own[3]] {
            let id = ids.next_call(own);
            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        // The same in every process: prompts that are cached elsewhere hold it.
        assert_eq!(ids.next_call("tu_2000"), "niT74p6Jm");
    }

    #[test]
    fn ids_that_a_vendor_repeats_are_replaced_and_stay_so() {
        let messages: Vec<Message> =
            (0..50).map(|number| call(&format!("tu_{number}"), Some(("openai-chat", "call_0")))).collect();
        let mut all = CallIds::of(&messages, "openai-chat");
        let all: Vec<String> = (0..50).map(|number| all.next_call(&format!("tu_{number}"))).collect();
        assert_eq!((all.iter().collect::<HashSet<_>>().len(), all[0].as_str()), (50, "call_0"));
        for length in 1..50 {
            let mut fewer = CallIds::of(&messages[..length], "openai-chat");
            for (number, id) in all.iter().enumerate().take(length) {
                assert_eq!(&fewer.next_call(&format!("tu_{number}")), id);
            }
        }
    }

    #[test]
    fn a_derived_id_avoids_ids_that_are_taken() {
        let first = derived("tu_1", &HashSet::new());
        let second = derived("tu_1", &HashSet::from([first.clone()]));
        assert_ne!(first, second);
        // A vendor's id that equals one that was derived before it gives way.
        let messages = [call("tu_1", None), call("tu_2", Some(("openai-chat", &first)))];
        let mut ids = CallIds::of(&messages, "openai-chat");
        assert_eq!(ids.next_call("tu_1"), first);
        assert_ne!(ids.next_call("tu_2"), first);
    }

    #[test]
    fn calls_with_one_id_of_ours_get_ids_of_their_own() {
        let messages = [call("own", None), call("own", None), call("own", Some(("openai-chat", "call_1")))];
        let mut ids = CallIds::of(&messages, "openai-chat");
        let calls = [(); 3].map(|()| ids.next_call("own"));
        let results = [(); 3].map(|()| ids.next_result("own"));
        assert_eq!(calls, results);
        assert_eq!((calls[2].as_str(), calls.iter().collect::<HashSet<_>>().len()), ("call_1", 3));
    }
}
