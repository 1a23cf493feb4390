//! Readers that poll whenever they like, while an actor writes, says, takes back and starts over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use jiff::Timestamp;
use petasos_core::event::{
    Event, ModelFinished, Payload, StatusIdle, StopReason, TitleSource, Titled, UserSteer,
};
use petasos_core::ids::SessionId;
use petasos_store::{Append, Checkpoint, Error, EventBatch, EventLog, EventQuery, Result};
use proptest::prelude::*;

use super::{Item, Live, LiveKind, Reader, Start};
use crate::feed::{Feed, Feeds, lock};

fn session_id() -> SessionId {
    "session_1".parse().unwrap()
}

/// A log in memory, so that every read is ready at once.
#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Log {
    fn len(&self) -> u64 {
        lock(&self.0).len() as u64
    }

    fn commit(&self, payloads: Vec<Payload>) -> Vec<Event> {
        let mut log = lock(&self.0);
        let first = log.len() as u64 + 1;
        let events: Vec<Event> = (first..).zip(payloads).map(event).collect();
        log.extend(events.iter().cloned());
        events
    }

    /// How many model calls have ended up to this event.
    fn ended(&self, sequence: u64) -> usize {
        let log = lock(&self.0);
        let ends = |event: &&Event| matches!(event.payload, Payload::ModelFinished(_));
        log.iter().take_while(|event| event.sequence <= sequence).filter(ends).count()
    }
}

fn event((sequence, payload): (u64, Payload)) -> Event {
    let created_at = Timestamp::UNIX_EPOCH;
    Event { session_id: session_id(), sequence, created_at, processed_at: Some(created_at), payload }
}

impl EventLog for Log {
    fn append(&self, _: Append) -> BoxFuture<'_, Result<()>> {
        ready(Err(Error::Closed)).boxed()
    }

    fn events<'a>(&'a self, _: &'a SessionId, query: EventQuery) -> BoxFuture<'a, Result<EventBatch>> {
        let wanted = query.after.unwrap_or(0) + 1..query.before.unwrap_or(u64::MAX);
        let log = lock(&self.0);
        let mut found = log.iter().filter(|event| wanted.contains(&event.sequence)).cloned();
        let events = found.by_ref().take(query.limit).collect();
        ready(Ok(EventBatch { events, has_more: found.next().is_some() })).boxed()
    }

    fn amendments<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Vec<Event>>> {
        ready(Ok(Vec::new())).boxed()
    }

    fn checkpoint<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, Result<Option<Checkpoint>>> {
        ready(Ok(None)).boxed()
    }
}

/// One piece of text: message, attempt at it, and place in the attempt.
type Piece = (usize, usize, usize);

/// What the actor of the session does.
struct Actor {
    feed: Arc<Feed>,
    log: Arc<Log>,
    awake: bool,
    /// In the log, and not yet shown.
    unpublished: Vec<Event>,
    call: Option<u64>,
    /// Whether the call is still made by this actor and not by one before it.
    own_call: bool,
    attempt: usize,
    said: usize,
}

impl Actor {
    fn message(&self) -> usize {
        self.log.ended(self.log.len())
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Load => {
                // The actor before, if any, failed between the log and the feed.
                self.unpublished.clear();
                self.feed.reaches(self.log.len());
                (self.awake, self.own_call) = (true, false);
            }
            _ if !self.awake => {}
            Op::Publish => self.feed.publish(&std::mem::take(&mut self.unpublished)),
            Op::Say(kind) => {
                if let Some(call) = self.call.filter(|_| self.own_call) {
                    let text = format!("{} {} {};", self.message(), self.attempt, self.said);
                    self.feed.say(call, *kind, &text);
                    // While the end is on its way to readers, they may or may not hear more; it is not counted.
                    self.said += 1;
                }
            }
            Op::TakeBack => {
                if let Some(call) = self.call.filter(|_| self.own_call) {
                    self.feed.take_back(call);
                    (self.attempt, self.said) = (self.attempt + 1, 0);
                }
            }
            // An actor appends one thing after another.
            _ if !self.unpublished.is_empty() => {}
            Op::Commit(count) => {
                let steer = |_| Payload::UserSteer(UserSteer { message: "x".to_owned() });
                self.unpublished = self.log.commit((0..*count).map(steer).collect());
            }
            Op::Title => {
                let titled = Titled { title: Some("A title".to_owned()), source: TitleSource::Generated };
                self.unpublished = self.log.commit(vec![Payload::Titled(titled)]);
            }
            Op::Begin => {
                // One that follows a call without an end is another attempt at the same message.
                let again = self.call.is_some();
                self.attempt = if again { self.attempt + 1 } else { 0 };
                self.said = 0;
                (self.call, self.own_call) = (Some(self.feed.begin_call(again)), true);
            }
            Op::End if self.call.is_some() && self.own_call => {
                let finished = ModelFinished { call: 1, model: String::new(), ..ModelFinished::default() };
                self.unpublished = self.log.commit(vec![Payload::ModelFinished(finished)]);
                self.call = None;
            }
            Op::Forget if self.call.is_none() => self.feed.forget(),
            _ => {}
        }
    }
}

/// A client: shows what it is told, and checks that it makes sense.
struct Client {
    reader: Reader,
    log: Arc<Log>,
    /// The last durable event.
    cursor: u64,
    shown: Vec<(LiveKind, Piece)>,
}

impl Client {
    fn join(actor: &Actor, start: Start) -> Self {
        let known = actor.log.len();
        let log = Arc::clone(&actor.log);
        let reader = Reader::new(session_id(), Arc::clone(&log) as _, Arc::clone(&actor.feed), start, known);
        let shown_to_all = known - actor.unpublished.len() as u64;
        let cursor = match start {
            Start::Now => shown_to_all,
            Start::After(sequence) => sequence.min(known),
        };
        Client { reader, log, cursor, shown: Vec::new() }
    }

    /// Takes at most so many items; says whether there are no more.
    fn poll(&mut self, most: usize) -> bool {
        for _ in 0..most {
            match self.reader.next().now_or_never() {
                None => return true,
                Some(item) => self.take(item.unwrap().unwrap()),
            }
        }
        false
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Durable(event) => {
                assert_eq!(event.sequence, self.cursor + 1, "every event once, in order");
                self.cursor = event.sequence;
                if matches!(event.payload, Payload::ModelFinished(_)) {
                    self.shown.clear();
                }
            }
            Item::Live(live) => {
                assert_eq!(live.sequence, self.cursor);
                if live.kind == LiveKind::Title {
                    assert_eq!(live.text, "A title");
                    return;
                }
                if live.reset {
                    self.shown.retain(|(kind, _)| *kind != live.kind);
                }
                self.shown.extend(live.text.split_terminator(';').map(|text| (live.kind, piece(text))));
                // An empty piece only takes back.
                if !live.text.is_empty() {
                    self.check(live.kind);
                }
            }
        }
    }

    fn newest_attempt(&self) -> usize {
        self.shown.iter().map(|(_, piece)| piece.1).max().unwrap_or_default()
    }

    /// The pieces of the newest attempt.
    fn newest(&self) -> Vec<Piece> {
        let attempt = self.newest_attempt();
        self.shown.iter().map(|(_, piece)| *piece).filter(|piece| piece.1 == attempt).collect()
    }

    /// Checks what is on display after a piece of some kind.
    fn check(&self, kind: LiveKind) {
        let (message, attempt) = (self.log.ended(self.cursor), self.newest_attempt());
        let newest = self.newest();
        let expected: Vec<Piece> = (0..newest.len()).map(|place| (message, attempt, place)).collect();
        assert_eq!(newest, expected, "the message under way, from its beginning");
        let mixed = self.shown.iter().find(|(other, piece)| *other == kind && piece.1 != attempt);
        assert_eq!(mixed, None, "one attempt of each kind");
    }
}

fn piece(text: &str) -> Piece {
    let numbers: Vec<usize> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2])
}

#[derive(Debug, Clone)]
enum Op {
    Load,
    Commit(usize),
    Title,
    Publish,
    Begin,
    Say(LiveKind),
    TakeBack,
    End,
    Forget,
    Join(Start),
    Poll { pick: usize, most: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => Just(Op::Load),
        2 => prop_oneof![1_usize..4, Just(200)].prop_map(Op::Commit),
        1 => Just(Op::Title),
        6 => Just(Op::Publish),
        3 => Just(Op::Begin),
        8 => prop_oneof![Just(LiveKind::Text), Just(LiveKind::Thinking)].prop_map(Op::Say),
        1 => Just(Op::TakeBack),
        2 => Just(Op::End),
        1 => Just(Op::Forget),
        2 => prop_oneof![Just(Start::Now), (0_u64..40).prop_map(Start::After)].prop_map(Op::Join),
        8 => (0_usize..8, prop_oneof![1_usize..4, Just(1000)]).prop_map(|(pick, most)| Op::Poll { pick, most }),
    ]
}

fn run(ops: &[Op]) {
    let log = Arc::new(Log::default());
    log.commit((0..5).map(|_| Payload::Archived {}).collect());
    let feed = Feeds::default().get(&session_id());
    let (unpublished, call) = (Vec::new(), None);
    let mut actor =
        Actor { feed, log, awake: false, unpublished, call, own_call: false, attempt: 0, said: 0 };
    let mut clients = vec![Client::join(&actor, Start::After(0))];
    for op in ops {
        match op {
            Op::Join(start) => clients.push(Client::join(&actor, *start)),
            Op::Poll { pick, most } => {
                let pick = pick % clients.len();
                clients[pick].poll(*most);
            }
            op => actor.apply(op),
        }
    }
    actor.feed.publish(&std::mem::take(&mut actor.unpublished));
    for client in &mut clients {
        assert!(client.poll(10_000));
        assert_eq!(client.cursor, actor.log.len(), "nothing is missing");
        if actor.call.is_some() && actor.own_call && actor.said > 0 {
            assert_eq!(client.newest().len(), actor.said, "all that was said is shown");
            assert_eq!(client.newest_attempt(), actor.attempt);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_event_once_and_the_text_under_way(ops in prop::collection::vec(op(), 0..80)) {
        run(&ops);
    }
}

#[test]
fn a_reader_that_joins_between_the_log_and_the_feed_sees_no_text_after_its_end() {
    for start in [Start::Now, Start::After(5), Start::After(6), Start::After(99)] {
        let ops = [
            Op::Load,
            Op::Begin,
            Op::Say(LiveKind::Text),
            Op::End,
            Op::Join(start),
            Op::Poll { pick: 1, most: 9 },
        ];
        run(&ops);
    }
}

fn live_text(item: Option<Item>) -> String {
    match item {
        Some(Item::Live(live)) => live.text,
        other => panic!("expected text, got {other:?}"),
    }
}

#[tokio::test]
async fn what_is_said_is_gathered_for_a_moment_and_shown_when_it_ends() {
    let (feed, log) = (Feeds::default().get(&session_id()), Arc::new(Log::default()));
    let reader = Reader::new(session_id(), log.clone(), feed.clone(), Start::Now, 0);
    let mut reader = reader.paced(Duration::from_secs(3600));
    feed.reaches(0);
    let call = feed.begin_call(false);
    feed.say(call, LiveKind::Text, "one ");
    assert_eq!(live_text(reader.next().await.unwrap()), "one ");
    feed.say(call, LiveKind::Text, "two ");
    assert!(reader.next().now_or_never().is_none());
    feed.say(call, LiveKind::Text, "three ");
    assert!(reader.next().now_or_never().is_none());
    let idle = StatusIdle { stop_reason: StopReason::end_turn(), takes_up: Vec::new() };
    feed.publish(&log.commit(vec![Payload::StatusIdle(idle)]));
    feed.forget();
    assert_eq!(live_text(reader.next().await.unwrap()), "two three ");
    assert!(matches!(reader.next().await.unwrap(), Some(Item::Durable(_))));
}

#[tokio::test]
async fn the_first_piece_of_a_message_does_not_wait_for_the_pace_of_the_one_before() {
    let (feed, log) = (Feeds::default().get(&session_id()), Arc::new(Log::default()));
    let reader = Reader::new(session_id(), log.clone(), feed.clone(), Start::Now, 0);
    let mut reader = reader.paced(Duration::from_secs(3600));
    feed.reaches(0);
    for text in ["one", "two"] {
        let call = feed.begin_call(false);
        assert!(reader.next().now_or_never().is_none());
        feed.say(call, LiveKind::Text, text);
        assert_eq!(live_text(reader.next().await.unwrap()), text);
        let idle = StatusIdle { stop_reason: StopReason::end_turn(), takes_up: Vec::new() };
        feed.publish(&log.commit(vec![Payload::StatusIdle(idle)]));
        assert!(matches!(reader.next().await.unwrap(), Some(Item::Durable(_))));
    }
}

#[tokio::test]
async fn what_nothing_came_in_the_place_of_is_taken_back_when_the_message_ends() {
    let (feed, log) = (Feeds::default().get(&session_id()), Arc::new(Log::default()));
    let mut reader = Reader::new(session_id(), log.clone(), feed.clone(), Start::Now, 0);
    feed.reaches(0);
    let call = feed.begin_call(false);
    feed.say(call, LiveKind::Text, "half");
    assert_eq!(live_text(reader.next().await.unwrap()), "half");
    feed.take_back(call);
    feed.say(call, LiveKind::Thinking, "hm");
    let idle = StatusIdle { stop_reason: StopReason::end_turn(), takes_up: Vec::new() };
    feed.publish(&log.commit(vec![Payload::StatusIdle(idle)]));
    let live = |kind, text: &str| Item::Live(Live { sequence: 0, kind, text: text.to_owned(), reset: true });
    assert_eq!(reader.next().await.unwrap(), Some(live(LiveKind::Thinking, "hm")));
    assert_eq!(reader.next().await.unwrap(), Some(live(LiveKind::Text, "")));
    assert!(matches!(reader.next().await.unwrap(), Some(Item::Durable(_))));
}

/// A client that does not read holds one piece of what is said, not all of it.
#[test]
fn what_is_said_comes_in_pieces_of_a_bounded_size() {
    let log = Arc::new(Log::default());
    let feed = Feeds::default().get(&session_id());
    let new_reader =
        || Reader::new(session_id(), Arc::clone(&log) as _, Arc::clone(&feed), Start::After(0), 0);
    let mut readers = [new_reader(), new_reader()];
    let call = feed.begin_call(false);
    let text = "größer ".repeat(40_000);
    feed.say(call, LiveKind::Thinking, &text);
    feed.say(call, LiveKind::Text, &text);
    let take_all = |reader: &mut Reader| {
        let mut said = String::new();
        let mut events = 0;
        while let Some(item) = reader.next().now_or_never() {
            match item.unwrap().unwrap() {
                Item::Durable(_) => {
                    assert_eq!(said.len(), 2 * text.len(), "everything that was said comes before its event");
                    events += 1;
                }
                Item::Live(live) => {
                    assert!(live.text.len() <= super::MAX_SAID, "{}", live.text.len());
                    said.push_str(&live.text);
                }
            }
        }
        assert_eq!(said, text.repeat(2));
        events
    };
    assert_eq!(take_all(&mut readers[0]), 0, "while it is being said");
    let finished = ModelFinished { call: 1, model: String::new(), ..ModelFinished::default() };
    feed.publish(&log.commit(vec![Payload::ModelFinished(finished)]));
    assert_eq!(take_all(&mut readers[1]), 1, "after its end");
}

/// What was said is kept for as long as somebody who heard its beginning has not shown its end.
#[test]
fn what_was_said_is_forgotten_when_all_have_shown_it() {
    let log = Arc::new(Log::default());
    let feed = Feeds::default().get(&session_id());
    let new_reader =
        || Reader::new(session_id(), Arc::clone(&log) as _, Arc::clone(&feed), Start::After(0), 0);
    let mut readers = vec![new_reader(), new_reader(), new_reader()];
    let log_only = new_reader().without_live();
    let is_kept = || !feed.lock().live.segments.is_empty();
    let call = feed.begin_call(false);
    feed.say(call, LiveKind::Text, "text");
    let finished = ModelFinished { call: 1, model: String::new(), ..ModelFinished::default() };
    feed.publish(&log.commit(vec![Payload::ModelFinished(finished)]));
    let late = new_reader();
    while let Some(item) = readers[0].next().now_or_never() {
        item.unwrap().unwrap();
    }
    assert!(is_kept());
    drop(readers.remove(0));
    drop((late, log_only));
    assert!(is_kept(), "two have shown nothing");
    drop(readers.remove(0));
    assert!(is_kept(), "one has shown nothing");
    let shown = [readers[0].next().now_or_never(), readers[0].next().now_or_never()];
    let shown = shown.map(|item| item.unwrap().unwrap().unwrap());
    assert!(matches!(&shown, [Item::Live(live), Item::Durable(_)] if live.text == "text"), "{shown:?}");
    assert!(!is_kept());
    let call = feed.begin_call(false);
    feed.say(call, LiveKind::Text, "more");
    assert!(is_kept());
    drop(readers);
    feed.publish(&log.commit(vec![Payload::ModelFinished(ModelFinished::default())]));
    assert!(!is_kept(), "nobody listens");
}
