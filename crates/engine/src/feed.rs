//! What readers of an awake session share: the newest events, and the text that is being said right now.
//!
//! Readers pull. A feed keeps no queue per reader, so a slow one costs nothing: it finds later that there is more,
//! takes the text in one piece, and goes to the log for events that are no longer here.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use petasos_core::event::{Event, Payload};
use petasos_core::ids::SessionId;
use tokio::sync::watch;

use crate::reader::LiveKind;

/// How many events a feed keeps so that readers need not go to the log.
const RECENT: usize = 128;

/// All feeds that somebody holds.
#[derive(Clone, Default)]
pub(crate) struct Feeds(Arc<Mutex<HashMap<SessionId, Weak<Feed>>>>);

impl Feeds {
    /// The feed of a session, made if nobody holds it yet.
    pub(crate) fn get(&self, session_id: &SessionId) -> Arc<Feed> {
        let mut feeds = lock(&self.0);
        if let Some(feed) = feeds.get(session_id).and_then(Weak::upgrade) {
            return feed;
        }
        let feed = Arc::new(Feed {
            session_id: session_id.clone(),
            inner: Mutex::new(Inner::default()),
            changes: watch::Sender::new(()),
            said: watch::Sender::new(()),
            feeds: self.clone(),
        });
        feeds.insert(session_id.clone(), Arc::downgrade(&feed));
        feed
    }

    /// How many feeds are held.
    pub(crate) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    /// Ends all readers.
    pub(crate) fn close_all(&self) {
        let feeds: Vec<_> = lock(&self.0).values().filter_map(Weak::upgrade).collect();
        feeds.iter().for_each(|feed| feed.close());
    }
}

/// One session's feed.
pub(crate) struct Feed {
    session_id: SessionId,
    pub(crate) inner: Mutex<Inner>,
    /// There are more events, or there will be none.
    pub(crate) changes: watch::Sender<()>,
    /// More was said. Readers who have just shown some do not listen to this for a moment.
    pub(crate) said: watch::Sender<()>,
    feeds: Feeds,
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut feeds = lock(&self.feeds.0);
        if feeds.get(&self.session_id).is_some_and(|feed| feed.strong_count() == 0) {
            feeds.remove(&self.session_id);
        }
    }
}

#[derive(Default)]
pub(crate) struct Inner {
    /// Whether it is known how far the log goes.
    known: bool,
    /// The last event that is in the log and may be shown.
    pub(crate) last_sequence: u64,
    /// The newest events, without a gap up to `last_sequence`.
    pub(crate) recent: VecDeque<Arc<Event>>,
    /// The model call under way, or the last one.
    pub(crate) live: LiveCall,
    /// Whether the session is gone or the server stops.
    pub(crate) closed: bool,
    /// How many readers are shown what is being said.
    listeners: usize,
}

impl Inner {
    /// One more reader is shown what is being said.
    pub(crate) fn add_listener(&mut self) {
        self.listeners += 1;
    }

    /// A reader goes away, or is no longer shown what is being said.
    pub(crate) fn remove_listener(&mut self) {
        self.listeners = self.listeners.saturating_sub(1);
    }

    /// The model call under way ended with this event. The rest of what it said is for those who listened.
    fn end_call(&mut self, ended_at: u64) {
        if self.live.ended_at.is_none() {
            self.live.ended_at = Some(ended_at);
            self.live.unshown = self.listeners;
            self.live.forget_if_shown();
        }
    }

    /// A reader has shown all of the call that ended, or never will.
    pub(crate) fn was_shown(&mut self) {
        self.live.unshown = self.live.unshown.saturating_sub(1);
        self.live.forget_if_shown();
    }
}

/// What a model call has said so far.
#[derive(Debug, Default)]
pub(crate) struct LiveCall {
    /// Counts the model calls of this feed; 0 before the first.
    pub(crate) number: u64,
    /// What was said, in order.
    pub(crate) segments: Vec<Segment>,
    /// How often what was said had to be taken back.
    pub(crate) resets: u32,
    /// The first event that was appended when it ended; none while it is under way.
    pub(crate) ended_at: Option<u64>,
    /// What it says while it may be about to be cut off, and nobody is shown yet.
    held: Option<Vec<Segment>>,
    /// How many readers have yet to show the rest of it, once it has ended.
    unshown: usize,
}

impl LiveCall {
    /// What was said is in the log. Nobody needs it here once all have shown it.
    fn forget_if_shown(&mut self) {
        if self.unshown == 0 {
            self.segments = Vec::new();
        }
    }

    fn say(&mut self, kind: LiveKind, text: &str) {
        let segments = self.held.as_mut().unwrap_or(&mut self.segments);
        match segments.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(text),
            _ => segments.push(Segment { kind, text: text.to_owned() }),
        }
    }

    /// Shows what was held back, unless the call was cut off.
    fn show_held(&mut self) {
        let held = self.held.take().unwrap_or_default();
        if self.ended_at.is_none() {
            held.iter().for_each(|segment| self.say(segment.kind, &segment.text));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) kind: LiveKind,
    pub(crate) text: String,
}

impl Feed {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Makes known how far the log goes, for the actor that is about to add to it.
    pub(crate) fn reaches(&self, sequence: u64) {
        let mut inner = self.lock();
        inner.known = true;
        if inner.last_sequence < sequence {
            // The actor before wrote this and failed before it could show it. What its model call said is over.
            let first = inner.last_sequence + 1;
            inner.end_call(first);
            inner.last_sequence = sequence;
            inner.recent.clear();
        }
    }

    /// Makes known how far the log goes if no actor has done so. An actor shows events a moment after they are in
    /// the log, and with them the end of what was being said; a reader must not run ahead of that.
    pub(crate) fn reaches_at_first(&self, sequence: u64) {
        let mut inner = self.lock();
        if !inner.known {
            inner.known = true;
            inner.last_sequence = sequence;
        }
    }

    /// Shows events that are now in the log, and with them what the model said while they were on their way there.
    pub(crate) fn publish(&self, events: &[Event]) {
        let Some(first) = events.first() else { return };
        {
            let mut inner = self.lock();
            if first.sequence != inner.last_sequence + 1 {
                inner.recent.clear();
            }
            for event in events {
                inner.last_sequence = event.sequence;
                inner.recent.push_back(Arc::new(event.clone()));
            }
            let surplus = inner.recent.len().saturating_sub(RECENT);
            inner.recent.drain(..surplus);
            if inner.live.number > 0 && inner.live.ended_at.is_none() && events.iter().any(ends_a_call) {
                inner.end_call(first.sequence);
            }
            inner.live.show_held();
        }
        self.changes.send_replace(());
    }

    /// A model call starts, and gets a number. `taken_back` if an earlier attempt may have been shown to readers.
    pub(crate) fn begin_call(&self, taken_back: bool) -> u64 {
        let mut inner = self.lock();
        let number = inner.live.number + 1;
        inner.live = LiveCall { number, resets: u32::from(taken_back), ..LiveCall::default() };
        number
    }

    /// The model said more. A call that has ended may not notice at once; it is no longer heard.
    pub(crate) fn say(&self, call: u64, kind: LiveKind, text: &str) {
        {
            let mut inner = self.lock();
            if inner.live.number != call || inner.live.ended_at.is_some() {
                return;
            }
            inner.live.say(kind, text);
        }
        self.said.send_replace(());
    }

    /// The model call starts over: what it said does not count.
    pub(crate) fn take_back(&self, call: u64) {
        let mut inner = self.lock();
        if inner.live.number != call || inner.live.ended_at.is_some() {
            return;
        }
        inner.live.segments.clear();
        inner.live.resets += 1;
        if let Some(held) = &mut inner.live.held {
            held.clear();
        }
    }

    /// The text that the model call under way has said so far. Readers are shown no more of it until
    /// events come or [`Feed::release`], so that what an interrupt keeps is what they have seen.
    pub(crate) fn hold(&self) -> String {
        let mut inner = self.lock();
        if inner.live.ended_at.is_some() {
            return String::new();
        }
        inner.live.held.get_or_insert_default();
        let texts = inner.live.segments.iter().filter(|segment| segment.kind == LiveKind::Text);
        texts.map(|segment| segment.text.as_str()).collect()
    }

    /// Shows what was held back for events that did not come.
    pub(crate) fn release(&self) {
        self.lock().live.show_held();
        self.said.send_replace(());
    }

    /// The actor goes to sleep: readers that are behind go to the log. What was said last is not there in pieces, so
    /// it stays until those that heard the beginning have shown the end of it.
    pub(crate) fn forget(&self) {
        self.lock().recent = VecDeque::new();
    }

    /// There will be no more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changes.send_replace(());
    }
}

/// Whether the model call under way is over with this event.
pub(crate) fn ends_a_call(event: &Event) -> bool {
    matches!(event.payload, Payload::ModelFinished(_) | Payload::StatusIdle(_))
}

/// Locks a mutex whose data stays consistent even if a holder panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use petasos_core::event::{StatusIdle, StopReason};

    use super::*;

    fn text(feed: &Feed) -> String {
        feed.lock().live.segments.iter().map(|segment| segment.text.as_str()).collect()
    }

    #[test]
    fn what_is_held_back_is_shown_unless_the_call_is_cut_off() {
        let feed = Feeds::default().get(&"session_1".parse().unwrap());
        // What was said stays for somebody who has yet to show it.
        feed.lock().add_listener();
        let call = feed.begin_call(false);
        feed.say(call, LiveKind::Text, "one ");
        assert_eq!(feed.hold(), "one ");
        feed.say(call, LiveKind::Text, "two ");
        assert_eq!(text(&feed), "one ");
        feed.release();
        assert_eq!(text(&feed), "one two ");
        assert_eq!(feed.hold(), "one two ");
        feed.say(call, LiveKind::Text, "three ");
        let idle = StatusIdle { stop_reason: StopReason::end_turn(), takes_up: Vec::new() };
        feed.publish(&[Event {
            session_id: "session_1".parse().unwrap(),
            sequence: 1,
            created_at: Timestamp::UNIX_EPOCH,
            processed_at: None,
            payload: Payload::StatusIdle(idle),
        }]);
        assert_eq!((text(&feed).as_str(), feed.hold().as_str()), ("one two ", ""));
    }
}
