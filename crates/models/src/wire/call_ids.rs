//! The ids under which a vendor hears of the model's calls again.
//!
//! A vendor gets its own id back. Where there is none, the call came from elsewhere, and its id is derived from ours:
//! nine letters and digits, which fit every vendor, and the same in every request.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use petasos_core::model::{AssistantPart, Message, Opaque};
use serde_json::json;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH: usize = 9;

/// What is kept of a call so that its vendor's id can go back.
pub(super) fn kept(format: &str, id: &str) -> Opaque {
    Opaque { format: format.to_owned(), provider: None, data: json!({ "id": id }) }
}

/// The id of a call for its vendor.
pub(super) fn call_id<'a>(id: &str, opaque: Option<&'a Opaque>) -> Cow<'a, str> {
    let own = opaque.and_then(|opaque| opaque.data["id"].as_str()).filter(|id| !id.is_empty());
    own.map_or_else(|| Cow::Owned(derived(id)), Cow::Borrowed)
}

/// The ids of all calls of a conversation, by ours.
pub(super) struct CallIds<'a> {
    ids: HashMap<&'a str, Cow<'a, str>>,
}

impl<'a> CallIds<'a> {
    /// Reads the calls. Some servers give the same id to one call after another; only the first of them keeps it.
    pub(super) fn of(messages: &'a [Message]) -> Self {
        let (mut ids, mut taken) = (HashMap::new(), HashSet::new());
        let parts = messages.iter().filter_map(|message| match message {
            Message::Assistant(parts) => Some(parts),
            _ => None,
        });
        for part in parts.flatten() {
            if let AssistantPart::ToolCall { id, opaque, .. } = part {
                let mut vendors = call_id(id, opaque.as_ref());
                if !taken.insert(vendors.clone()) {
                    vendors = Cow::Owned(derived(id));
                    taken.insert(vendors.clone());
                }
                ids.insert(id.as_str(), vendors);
            }
        }
        CallIds { ids }
    }

    /// The vendor's id for ours.
    pub(super) fn get(&self, id: &str) -> Cow<'_, str> {
        self.ids.get(id).map_or_else(|| Cow::Owned(derived(id)), |vendors| Cow::Borrowed(vendors.as_ref()))
    }
}

/// Letters and digits from a hash (FNV-1a) of our id.
fn derived(id: &str) -> String {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let digit = |place: u32| LETTERS[(hash / 62_u64.pow(place) % 62) as usize] as char;
    (0..LENGTH as u32).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn call(id: &str, vendors: Option<&str>) -> Message {
        let opaque = vendors.map(|id| kept("any", id));
        let (id, name) = (id.to_owned(), "look".to_owned());
        Message::Assistant(vec![AssistantPart::ToolCall { id, name, input: Map::new(), opaque }])
    }

    #[test]
    fn a_vendor_gets_its_own_id_back_and_others_a_derived_one() {
        let messages = [
            call("tu_1", Some("call_0")),
            call("tu_2", Some("call_0")),
            call("mcp_3", None),
            call("tu_4", Some("")),
        ];
        let ids = CallIds::of(&messages);
        assert_eq!(ids.get("tu_1"), "call_0");
        let rest = ["tu_2", "mcp_3", "tu_4", "unknown"].map(|id| ids.get(id).into_owned());
        for id in &rest {
            assert!(id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
        assert_eq!(rest.iter().collect::<HashSet<_>>().len(), rest.len());
        assert_eq!(ids.get("mcp_3"), derived("mcp_3"));
    }
}
