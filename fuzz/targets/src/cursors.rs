//! Cursors and queries of the embedded store: any text is a place in a listing or is refused, and no page repeats
//! another.

use std::collections::BTreeSet;

use jiff::Timestamp;
use petasos_core::agent::AgentVersion;
use petasos_core::event::{Event, Payload, UserSteer};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use petasos_store::sqlite::{Options, SqliteStore};
use petasos_store::{
    AgentStore, Append, Cursor, Error, EventLog, EventQuery, Order, Outbox, PageRequest, Result,
    SessionFilter, SessionStore,
};
use serde_json::{Map, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::Target;

/// How many of each thing the store holds.
const COUNT: u32 = 7;

/// A listing, a limit and a cursor: `sessions 3 73…`; or a query of a log: `events 3 1..6 desc user.steer`. Anything
/// else is taken as a cursor of every listing.
pub fn target() -> Target {
    let store = Filled::new();
    Box::new(move |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            store.runtime.block_on(store.check(text.trim_end_matches('\n')));
        }
    })
}

/// A store with a few of everything.
struct Filled {
    // Before the directory, so that nothing is open when it goes.
    runtime: Runtime,
    store: SqliteStore,
    tenant: TenantId,
    agent: AgentId,
    session: SessionId,
    _directory: TempDir,
}

impl Filled {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options::new(directory.path().join("petasos.db"))).unwrap();
        let tenant = TenantId::default_tenant();
        let (agent, session) = ("agent_0".parse().unwrap(), "session_0".parse().unwrap());
        let filled = Filled { runtime, store, tenant, agent, session, _directory: directory };
        filled.runtime.block_on(filled.fill()).unwrap();
        filled
    }

    async fn fill(&self) -> Result<()> {
        for number in 0..COUNT {
            let at = Timestamp::from_second(1_760_000_000 + i64::from(number / 2)).unwrap();
            let id: AgentId = format!("agent_{number}").parse().unwrap();
            let definition = serde_json::from_value(json!({ "name": "x", "model": "demo/fast" })).unwrap();
            let mut agent = AgentVersion {
                id,
                tenant: self.tenant.clone(),
                version: 1,
                definition,
                created_at: at,
                updated_at: at,
                archived_at: None,
            };
            self.store.create_agent(agent.clone()).await?;
            agent.id = self.agent.clone();
            agent.version = number + 2;
            self.store.add_agent_version(agent).await?;
            let header = SessionHeader {
                id: format!("session_{number}").parse().unwrap(),
                tenant: self.tenant.clone(),
                agent_id: self.agent.clone(),
                agent_version: 1,
                user_id: None,
                platform: "api".into(),
                created_at: at,
            };
            let view = SessionView::new(at, None, Map::new());
            self.store.create_session(SessionRecord { header, view }).await?;
        }
        let at = Timestamp::from_second(1_760_000_100).unwrap();
        let event = |sequence| Event {
            session_id: self.session.clone(),
            sequence,
            created_at: at,
            processed_at: None,
            payload: Payload::UserSteer(UserSteer { message: "x".into() }),
        };
        let mut view = SessionView::new(at, None, Map::new());
        view.last_sequence = u64::from(COUNT);
        let append = Append {
            session_id: self.session.clone(),
            expected_sequence: 0,
            events: (1..=u64::from(COUNT)).map(event).collect(),
            view,
            checkpoint: None,
            outbox: Outbox::default(),
        };
        self.store.append(append).await
    }

    async fn check(&self, text: &str) {
        let mut words = text.split(' ');
        let listing = words.next().unwrap_or_default();
        let limit: Option<usize> = words.next().and_then(|limit| limit.parse().ok());
        match (listing, limit) {
            ("events", Some(limit)) => self.check_events(limit, words).await,
            ("agents" | "versions" | "sessions", Some(limit)) => {
                self.check_listing(listing, limit, words.next().map(str::to_owned)).await;
            }
            _ => {
                for listing in ["agents", "versions", "sessions"] {
                    self.check_listing(listing, 3, Some(text.to_owned())).await;
                }
            }
        }
    }

    /// Follows a listing from a cursor to its end.
    async fn check_listing(&self, listing: &str, limit: usize, cursor: Option<String>) {
        let mut after = cursor.map(Cursor);
        let mut seen = BTreeSet::new();
        loop {
            let (names, next) = match self.page(listing, PageRequest { after, limit }).await {
                Ok(page) => page,
                Err(Error::InvalidCursor) if seen.is_empty() => return,
                Err(error) => panic!("{listing}: {error:?}"),
            };
            assert!(names.len() <= limit);
            for name in names {
                assert!(seen.insert(name), "{listing} repeats an entry");
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        // Every agent has one version, and one of them has another for each.
        assert!(seen.len() <= COUNT as usize + 1, "{listing} shows more than there is");
    }

    async fn page(&self, listing: &str, page: PageRequest) -> Result<(Vec<String>, Option<Cursor>)> {
        Ok(match listing {
            "agents" => {
                let page = self.store.agents(&self.tenant, page).await?;
                (page.items.into_iter().map(|agent| agent.id.to_string()).collect(), page.next)
            }
            "versions" => {
                let page = self.store.agent_versions(&self.tenant, &self.agent, page).await?;
                (page.items.into_iter().map(|agent| agent.version.to_string()).collect(), page.next)
            }
            _ => {
                let page = self.store.sessions(&self.tenant, SessionFilter::default(), page).await?;
                (page.items.into_iter().map(|session| session.header.id.to_string()).collect(), page.next)
            }
        })
    }

    async fn check_events(&self, limit: usize, mut words: std::str::Split<'_, char>) {
        let (after, before) = words.next().and_then(|range| range.split_once("..")).unwrap_or_default();
        let (after, before) = (after.parse().ok(), before.parse().ok());
        let descending = words.next() == Some("desc");
        let order = if descending { Order::Descending } else { Order::Ascending };
        let types: Vec<String> = words.map(str::to_owned).collect();
        let all = types.is_empty() || types.iter().any(|name| name == "user.steer");
        let query = EventQuery { after, before, types, order, limit, max_bytes: usize::MAX };
        let found = self.store.events(&self.session, query).await.unwrap();
        let mut expected: Vec<u64> = (1..=u64::from(COUNT))
            .filter(|at| all && *at > after.unwrap_or(0) && before.is_none_or(|before: u64| *at < before))
            .collect();
        if descending {
            expected.reverse();
        }
        expected.truncate(limit);
        assert_eq!(found.events.iter().map(|event| event.sequence).collect::<Vec<_>>(), expected);
    }
}
