//! What was changed afterwards about entries of a log: some are deleted, some have other metadata.
//!
//! The log itself only grows. Whoever shows it, to people, to programs or to a model, goes by this.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::event::{Event, Payload};

/// The fold of a log into what was changed about its entries.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Amendments {
    /// Sequences that are deleted, in order.
    deleted: Vec<Range<u64>>,
    /// Changes of the metadata of entries, as maps to merge.
    metadata: BTreeMap<u64, Map<String, Value>>,
}

impl Amendments {
    /// Takes an event of the log into account. Those that change no other may be left out.
    pub fn apply(&mut self, event: &Event) {
        match &event.payload {
            Payload::EventsDeleted(deleted) => {
                self.deleted.retain(|range| range.start < deleted.from);
                self.deleted.push(deleted.from..event.sequence);
            }
            Payload::EventMetadataChanged(changed) => {
                // What removes a key stays, to remove it from what the entry came with.
                self.metadata.entry(changed.sequence).or_default().extend(changed.metadata.clone());
            }
            _ => {}
        }
    }

    /// Whether an entry is deleted.
    pub fn hide(&self, sequence: u64) -> bool {
        self.deleted.iter().any(|range| range.contains(&sequence))
    }

    /// Whether a model must not read an entry. What it was told about its surroundings is not part of what was said.
    pub fn hide_from_model(&self, event: &Event) -> bool {
        let stays = matches!(
            event.payload,
            Payload::PromptPrepared(_)
                | Payload::SystemMessage(_)
                | Payload::CustomerVariables(_)
                | Payload::RunSettled(_)
        );
        !stays && self.hide(event.sequence)
    }

    /// The metadata of an entry.
    pub fn metadata_of(&self, event: &Event) -> Map<String, Value> {
        let mut metadata = event.payload.metadata().cloned().unwrap_or_default();
        metadata.extend(self.metadata.get(&event.sequence).cloned().unwrap_or_default());
        metadata.retain(|_, value| !value.is_null());
        metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{EventMetadataChanged, EventsDeleted, PersonMessage};

    fn event(sequence: u64, payload: Payload) -> Event {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let session_id = "00000000-0000-7000-8000-000000000000".parse().unwrap();
        Event { session_id, sequence, created_at: at, processed_at: Some(at), payload }
    }

    fn deleted(sequence: u64, from: u64) -> Event {
        event(sequence, Payload::EventsDeleted(EventsDeleted { from }))
    }

    #[test]
    fn what_comes_after_a_deletion_is_there() {
        let mut amendments = Amendments::default();
        [deleted(5, 3), deleted(9, 7)].iter().for_each(|event| amendments.apply(event));
        let hidden: Vec<u64> = (1..12).filter(|sequence| amendments.hide(*sequence)).collect();
        assert_eq!(hidden, [3, 4, 7, 8]);
        amendments.apply(&deleted(11, 2));
        assert_eq!((1..12).filter(|sequence| !amendments.hide(*sequence)).collect::<Vec<_>>(), [1, 11]);
    }

    #[test]
    fn metadata_is_merged_in_order() {
        let object = |value: Value| value.as_object().cloned().unwrap();
        let own = object(json!({ "a": 1, "b": 2 }));
        let said = PersonMessage { text: "x".into(), author: None, author_id: None, metadata: own };
        let said = event(1, Payload::PersonMessage(said));
        let mut amendments = Amendments::default();
        assert_eq!(amendments.metadata_of(&said), object(json!({ "a": 1, "b": 2 })));
        for metadata in [json!({ "a": null, "c": 3 }), json!({ "c": 4 })] {
            let changed = EventMetadataChanged { sequence: 1, metadata: object(metadata) };
            amendments.apply(&event(2, Payload::EventMetadataChanged(changed)));
        }
        assert_eq!(amendments.metadata_of(&said), object(json!({ "b": 2, "c": 4 })));
    }
}
