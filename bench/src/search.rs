//! Search over everything that one user ever said, and what being searchable costs an append.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use petasos_core::ids::TenantId;
use petasos_core::memory::UserScope;
use petasos_store::sqlite::{Options, SqliteStore};
use petasos_store::suite::{append, session, user_message};
use petasos_store::{EventLog, MessageOrder, MessageQuery, MessageSearch, SessionStore};

use crate::Bench;
use crate::report::{Section, Target, count, milliseconds, whole};
use crate::samples::Samples;

/// Messages of one session.
const MESSAGES: usize = 100;
/// Sessions that append at the same time.
const WRITERS: usize = 64;
const USER: &str = "ada";

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let sessions = bench.scale.of(1000, 50);
    let store = open(directory.path(), "search.db")?;
    fill(&store, sessions).await?;
    let mut section = Section::new("Search");
    section.note(&format!(
        "`session_search` of the store over {} messages of one user, {} times each: the best ten.",
        whole((sessions * MESSAGES) as u64),
        bench.scale.of(100, 10)
    ));
    section.header(&["", "p50", "worst"]);
    let mut worst: f64 = 0.0;
    for (name, words) in [
        ("a word in one message", "marker0".to_owned()),
        ("a word in every message", "message".to_owned()),
        ("three words in one of a hundred", "message topic7 OR topic8".to_owned()),
        ("a phrase in one of a hundred", "\"about topic9\"".to_owned()),
    ] {
        let mut samples = Samples::default();
        for _ in 0..bench.scale.of(100, 10) {
            let started = Instant::now();
            let hits = store.search_messages(&scope(), query(&words)).await?;
            samples.time(started.elapsed());
            anyhow::ensure!(!hits.is_empty(), "{words} was not found");
        }
        worst = worst.max(samples.p50());
        section.row([name.to_owned(), milliseconds(samples.p50()), milliseconds(samples.quantile(1.0))]);
    }
    store.close().await?;
    section.target(Target::at_most("Search of 100,000 messages", worst, 50.0, "ms"));
    appends(bench, directory.path(), &mut section).await?;
    Ok(section)
}

/// Appends of sessions with a user, which are searchable, and without, taking turns.
async fn appends(bench: &Bench, directory: &Path, section: &mut Section) -> Result<()> {
    let (searchable, plain) = (open(directory, "searchable.db")?, open(directory, "plain.db")?);
    create(&searchable, Some(USER)).await?;
    create(&plain, None).await?;
    let (mut with, mut without) = (Duration::ZERO, Duration::ZERO);
    let (rounds, each) = (bench.scale.of(20, 2), bench.scale.of(20, 5));
    for round in 0..rounds {
        with += write(&searchable, round * each, each).await?;
        without += write(&plain, round * each, each).await?;
    }
    searchable.close().await?;
    plain.close().await?;
    let all = (rounds * each) as f64 * WRITERS as f64;
    let (with, without) = (all / with.as_secs_f64(), all / without.as_secs_f64());
    section.note(&format!(
        "\nAppends of one message by {WRITERS} sessions at the same time: {} per second in sessions that can be searched, \
         {} per second in those that cannot.",
        count(with),
        count(without)
    ));
    section.target(Target::at_least("Appends that can be searched / that cannot", with / without, 0.8, "×"));
    Ok(())
}

async fn create(store: &SqliteStore, user: Option<&str>) -> Result<()> {
    for writer in 0..WRITERS {
        let mut record = session(&format!("session_{writer}"), 0);
        record.header.user_id = user.map(str::to_owned);
        store.create_session(record).await?;
    }
    Ok(())
}

/// Lets every session append so many messages after `after`.
async fn write(store: &SqliteStore, after: usize, messages: usize) -> Result<Duration> {
    let started = Instant::now();
    try_join_all((0..WRITERS).map(|writer| async move {
        for number in after..after + messages {
            let said = vec![user_message(&text(writer, number))];
            store.append(append(&format!("session_{writer}"), number as u64, said)).await?;
        }
        petasos_store::Result::Ok(())
    }))
    .await?;
    Ok(started.elapsed())
}

/// Stores the messages, and waits until all are in the index.
async fn fill(store: &SqliteStore, sessions: usize) -> Result<()> {
    for number in 0..sessions {
        let id = format!("session_{number}");
        let mut record = session(&id, number as i64);
        record.header.user_id = Some(USER.to_owned());
        store.create_session(record).await?;
        let said = (0..MESSAGES).map(|message| user_message(&text(number, message))).collect();
        store.append(append(&id, 0, said)).await?;
    }
    let last = format!("marker{}", sessions * MESSAGES - 1);
    while store.search_messages(&scope(), query(&last)).await?.is_empty() {}
    Ok(())
}

/// About forty words, as in an ordinary message.
fn text(session: usize, message: usize) -> String {
    let number = session * MESSAGES + message;
    let filler =
        "some of what people say to each other when they work on a thing together for a while ".repeat(2);
    format!("This message marker{number} is about topic{} and {filler}", number % 100)
}

fn query(words: &str) -> MessageQuery {
    MessageQuery { words: words.to_owned(), role: None, except: None, order: MessageOrder::Best, limit: 10 }
}

fn scope() -> UserScope {
    let header = session("session_0", 0).header;
    UserScope { tenant: TenantId::default_tenant(), agent_id: header.agent_id, user_id: USER.to_owned() }
}

fn open(directory: &Path, name: &str) -> Result<SqliteStore> {
    SqliteStore::open(Options::new(directory.join(name))).context("open a store")
}
