//! Follows one session: every durable event once, in order, and what is being said in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use petasos_core::amendments::Amendments;
use petasos_core::event::{Event, Payload, TitleSource};
use petasos_core::ids::SessionId;
use petasos_store::{EventLog, EventQuery, Order};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::error::Result;
use crate::feed::{Feed, Inner};

/// How many events of the log a reader takes at once.
const BATCH: usize = 128;
/// The most bytes of them. They are copies of its own, which it keeps for as long as its client does not read.
const MAX_KEPT: usize = 32 * 1024;
/// The most bytes of what is being said that a reader takes at once: it holds them until its client has them.
const MAX_SAID: usize = 16 * 1024;

/// Where a reader starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the next event that is appended.
    Now,
    /// After this sequence; 0 for the whole log.
    After(u64),
}

/// What a reader is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// An event of the log, internal ones included.
    Durable(Arc<Event>),
    /// Something that is never stored.
    Live(Live),
}

/// Something that is shown once and never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// The last durable event that the reader was shown.
    pub sequence: u64,
    /// Which kind it is.
    pub kind: LiveKind,
    /// The text: what was said since the last time, or the title.
    pub text: String,
    /// Whether everything of this kind that this message showed so far has to be dropped first.
    pub reset: bool,
}

/// The kinds of what is never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveKind {
    /// A piece of an agent's message.
    Text,
    /// A piece of an agent's reasoning.
    Thinking,
    /// A generated title.
    Title,
}

/// Follows one session.
pub struct Reader {
    session_id: SessionId,
    log: Arc<dyn EventLog>,
    feed: Arc<Feed>,
    changes: watch::Receiver<()>,
    said: watch::Receiver<()>,
    /// How long to gather what is said after some of it was shown.
    pace: Duration,
    /// Until when that is, once some was shown.
    gathers_until: Option<Instant>,
    /// The last durable event that was shown.
    cursor: u64,
    /// The last event that was there before this reader.
    joined_at: u64,
    /// The first model call whose text this reader is shown.
    joined_call: u64,
    shown: Shown,
    ready: VecDeque<Item>,
    /// The last model call that this reader has shown to its end.
    shown_call: u64,
    /// Whether only the log is of interest, and not what is being said.
    log_only: bool,
    /// What was deleted before this reader came.
    amendments: Amendments,
}

/// How much of a model call was shown.
#[derive(Debug, Default)]
struct Shown {
    call: u64,
    resets: u32,
    segment: usize,
    bytes: usize,
    /// What the client may have on display of this message.
    displayed: Kinds,
    /// What it has to drop before it displays more of it.
    stale: Kinds,
}

/// Kinds of what a model says.
#[derive(Debug, Default, Clone, Copy)]
struct Kinds {
    text: bool,
    thinking: bool,
}

impl Kinds {
    const ALL: Kinds = Kinds { text: true, thinking: true };

    /// Sets whether a kind is among them, and says whether it was.
    fn replace(&mut self, kind: LiveKind, with: bool) -> bool {
        match kind {
            LiveKind::Text => std::mem::replace(&mut self.text, with),
            LiveKind::Thinking => std::mem::replace(&mut self.thinking, with),
            LiveKind::Title => false,
        }
    }
}

impl Reader {
    pub(crate) fn new(
        session_id: SessionId,
        log: Arc<dyn EventLog>,
        feed: Arc<Feed>,
        start: Start,
        known_sequence: u64,
    ) -> Self {
        feed.reaches_at_first(known_sequence);
        let (changes, said) = (feed.changes.subscribe(), feed.said.subscribe());
        let (joined_at, joined_call) = {
            let mut inner = feed.lock();
            inner.add_listener();
            let under_way = inner.live.number > 0 && inner.live.ended_at.is_none();
            (inner.last_sequence, if under_way { inner.live.number } else { inner.live.number + 1 })
        };
        let cursor = match start {
            Start::Now => joined_at,
            // Nobody has seen what is not there yet.
            Start::After(sequence) => sequence.min(joined_at.max(known_sequence)),
        };
        Reader {
            session_id,
            log,
            feed,
            changes,
            said,
            pace: Duration::ZERO,
            gathers_until: None,
            cursor,
            joined_at,
            joined_call,
            // Whoever comes back may display a message that is then started over.
            shown: Shown { displayed: Kinds { text: true, thinking: false }, ..Shown::default() },
            ready: VecDeque::new(),
            shown_call: 0,
            log_only: false,
            amendments: Amendments::default(),
        }
    }

    /// Passes over what was deleted.
    pub(crate) fn amended(mut self, amendments: Amendments) -> Self {
        self.amendments = amendments;
        self
    }

    /// Gathers what is said for this long before it shows more. The first piece is shown at once, and so is the rest
    /// when the message ends.
    pub(crate) fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Shows durable events only, and is not woken by anything else.
    pub(crate) fn without_live(mut self) -> Self {
        self.stop_listening();
        self
    }

    fn stop_listening(&mut self) {
        if !std::mem::replace(&mut self.log_only, true) {
            let mut inner = self.feed.lock();
            inner.remove_listener();
            self.shown_call = note_shown(&mut inner, self.joined_call, self.shown_call);
        }
    }

    /// Whether everything was shown that was in the log when this reader came.
    pub fn is_up_to_date(&self) -> bool {
        self.ready.is_empty() && self.cursor >= self.joined_at
    }

    /// Whether another event of the log is there already.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() || self.feed.lock().last_sequence > self.cursor
    }

    /// The next event of the log, whenever it comes. What is being said is passed over. `None` when the session is gone
    /// or the server stops.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    pub async fn next_event(&mut self) -> Result<Option<Arc<Event>>> {
        loop {
            match self.next().await? {
                Some(Item::Durable(event)) => return Ok(Some(event)),
                Some(Item::Live(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next item, whenever it comes. `None` when the session is gone or the server stops.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(Some(item));
            }
            self.changes.mark_unchanged();
            self.said.mark_unchanged();
            let look = self.look();
            match look {
                Look::Ready => {}
                Look::ReadLog { through } => self.read_log(through).await?,
                Look::Closed => return Ok(None),
                Look::Wait => {
                    if self.changes.changed().await.is_err() {
                        return Ok(None);
                    }
                }
                Look::Listen => tokio::select! {
                    changed = self.changes.changed() => if changed.is_err() { return Ok(None) },
                    said = self.said.changed() => if said.is_err() { return Ok(None) },
                },
                Look::Gather { until } => tokio::select! {
                    changed = self.changes.changed() => if changed.is_err() { return Ok(None) },
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    /// Takes what the feed has for this reader, or says where else to look.
    fn look(&mut self) -> Look {
        let feed = Arc::clone(&self.feed);
        let mut inner = feed.lock();
        if inner.closed {
            return Look::Closed;
        }
        if inner.last_sequence < self.cursor {
            // What this reader knows already is about to be shown to the others.
            return Look::Wait;
        }
        let through = match inner.live.ended_at {
            _ if self.log_only => inner.last_sequence,
            // The rest of what was said comes before the events that it became.
            Some(ended_at) if self.cursor < ended_at && self.cursor + 1 == ended_at => {
                if self.show_live(&inner) == Said::Part {
                    return Look::Ready;
                }
                self.shown_call = note_shown(&mut inner, self.joined_call, self.shown_call);
                inner.last_sequence
            }
            Some(ended_at) if self.cursor < ended_at => ended_at - 1,
            Some(_) => {
                self.shown_call = note_shown(&mut inner, self.joined_call, self.shown_call);
                inner.last_sequence
            }
            None => inner.last_sequence,
        };
        if self.cursor < through {
            let first = inner.recent.front().map_or(u64::MAX, |event| event.sequence);
            if first > self.cursor + 1 {
                return if self.ready.is_empty() { Look::ReadLog { through } } else { Look::Ready };
            }
            // One at a time: a client that does not read would hold on to the others.
            let place = usize::try_from(self.cursor + 1 - first).unwrap_or(usize::MAX);
            if let Some(event) = inner.recent.get(place) {
                self.show(Arc::clone(event));
            }
        } else if inner.live.ended_at.is_none() && !self.log_only {
            if self.shown.call != inner.live.number {
                // The first piece of a message waits for nothing.
                self.gathers_until = None;
            }
            if let Some(until) = self.gathers_until
                && Instant::now() < until
            {
                return Look::Gather { until };
            }
            // What is left over was said before, and waits for nothing.
            let said = self.show_live(&inner);
            if said == Said::All && !self.ready.is_empty() && !self.pace.is_zero() {
                self.gathers_until = Some(Instant::now() + self.pace);
            }
        }
        match (self.ready.is_empty(), self.log_only) {
            (false, _) => Look::Ready,
            // What there was is deleted, and there is more.
            (true, _) if self.cursor < through => Look::Ready,
            (true, false) => Look::Listen,
            (true, true) => Look::Wait,
        }
    }

    async fn read_log(&mut self, through: u64) -> Result<()> {
        let query = EventQuery {
            after: Some(self.cursor),
            before: Some(through.saturating_add(1)),
            types: Vec::new(),
            order: Order::Ascending,
            limit: BATCH,
            max_bytes: MAX_KEPT,
        };
        let events = self.log.events(&self.session_id, query).await?.events;
        if events.is_empty() {
            // The log was deleted under us.
            self.feed.close();
        }
        events.into_iter().for_each(|event| self.show(Arc::new(event)));
        Ok(())
    }

    fn show(&mut self, event: Arc<Event>) {
        self.cursor = event.sequence;
        if self.amendments.hide(event.sequence) {
            return;
        }
        let title = match &event.payload {
            Payload::Titled(titled)
                if titled.source == TitleSource::Generated && event.sequence > self.joined_at =>
            {
                titled.title.clone()
            }
            _ => None,
        };
        self.ready.push_back(Item::Durable(event));
        if let Some(text) = title {
            self.ready.push_back(self.live(LiveKind::Title, text));
        }
    }

    fn live(&self, kind: LiveKind, text: String) -> Item {
        Item::Live(Live { sequence: self.cursor, kind, text, reset: false })
    }

    /// Shows what was said since the last time, or as much of it as a reader takes at once.
    fn show_live(&mut self, inner: &Inner) -> Said {
        let call = &inner.live;
        if call.number < self.joined_call {
            return Said::All;
        }
        if self.shown.call != call.number {
            // A call that starts with a reset is another attempt at the message of the one before.
            let displayed = if call.resets > 0 { self.shown.displayed } else { Kinds::default() };
            self.shown = Shown { call: call.number, displayed, ..Shown::default() };
        }
        if call.resets > self.shown.resets {
            let (resets, displayed) = (call.resets, self.shown.displayed);
            self.shown =
                Shown { call: call.number, resets, displayed, stale: Kinds::ALL, ..Shown::default() };
        }
        let mut room = MAX_SAID;
        while let Some(segment) = call.segments.get(self.shown.segment) {
            // A reset may leave less text than was shown; it restarts the count above.
            let rest = segment.text.get(self.shown.bytes..).unwrap_or_default();
            let text = beginning(rest, room);
            if !text.is_empty() {
                let (sequence, kind) = (self.cursor, segment.kind);
                let reset = self.shown.stale.replace(kind, false);
                self.shown.displayed.replace(kind, true);
                self.ready.push_back(Item::Live(Live { sequence, kind, text: text.to_owned(), reset }));
                self.shown.bytes += text.len();
                room -= text.len();
            }
            if text.len() < rest.len() {
                return Said::Part;
            }
            if self.shown.segment + 1 == call.segments.len() {
                break;
            }
            self.shown.segment += 1;
            self.shown.bytes = 0;
        }
        if call.ended_at.is_some() {
            self.take_back_the_rest();
        }
        Said::All
    }

    /// Takes back what is still on display of an attempt that counts no more, and that nothing came in the place of.
    fn take_back_the_rest(&mut self) {
        for kind in [LiveKind::Thinking, LiveKind::Text] {
            let is_stale = self.shown.stale.replace(kind, false);
            if is_stale && self.shown.displayed.replace(kind, false) {
                let (sequence, text) = (self.cursor, String::new());
                self.ready.push_back(Item::Live(Live { sequence, kind, text, reset: true }));
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

/// Notes that a reader, which listens since one call and has shown the end of another, has no use for the last one any
/// more if that has ended. Returns the last call that it has shown.
fn note_shown(inner: &mut Inner, joined_call: u64, shown_call: u64) -> u64 {
    let call = inner.live.number;
    if inner.live.ended_at.is_some() && call >= joined_call && call > shown_call {
        inner.was_shown();
        return call;
    }
    shown_call
}

/// How much of what was said is shown.
#[derive(PartialEq, Eq)]
enum Said {
    All,
    Part,
}

/// As much of a text as has room, in whole characters.
fn beginning(text: &str, room: usize) -> &str {
    let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

enum Look {
    Ready,
    ReadLog {
        through: u64,
    },
    /// Until there are more events.
    Wait,
    /// Until there are more events or more is said.
    Listen,
    /// Until there are more events or it is time to show what was said.
    Gather {
        until: Instant,
    },
    Closed,
}

#[cfg(test)]
mod tests;
