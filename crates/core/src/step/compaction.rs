//! What a finished compaction appends.

use crate::event::{Compacted, ModelFinished, Payload, Purpose};
use crate::state::Phase;

use super::Step;

impl Step<'_> {
    pub(super) fn compaction_finished(
        &mut self,
        call: u32,
        compacted: Compacted,
        summary_call: Option<ModelFinished>,
    ) {
        let turn = self.state.turn.as_ref();
        // The turn may have moved on without it.
        if !turn.is_some_and(|turn| turn.phase == Phase::Compacting && turn.model_calls == call) {
            return;
        }
        if let Some(finished) = summary_call {
            self.emit(Payload::ModelFinished(ModelFinished { purpose: Purpose::Summary, ..finished }));
        }
        self.emit(Payload::Compacted(compacted));
    }
}
