//! Logs as the server writes them, put into its database directly, since driving millions of turns takes too long.

use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use petasos_core::State;
use petasos_core::event::{
    AgentMessage, Block, Event, ModelFinished, ModelStarted, Payload, StatusIdle, StopReason, UserMessage,
};
use petasos_core::ids::SessionId;
use petasos_core::model::Usage;
use petasos_core::session::SessionView;
use rusqlite::{Connection, params};
use uuid::Uuid;

/// Events of one round in a log: a turn of six, and one of four that failed.
pub(crate) const ROUND: u64 = 10;

/// A database that nobody has open, for filling it. What is written is not on the disk before [`Filling::finish`].
pub(crate) struct Filling {
    connection: Connection,
    agent: String,
    now: Timestamp,
}

impl Filling {
    pub(crate) fn open(database: &Path, agent: &str) -> Result<Self> {
        let connection = Connection::open(database)?;
        connection.pragma_update(None, "journal_mode", "MEMORY")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "cache_size", -256 * 1024)?;
        connection.execute_batch("BEGIN")?;
        Ok(Filling { connection, agent: agent.to_owned(), now: Timestamp::now() })
    }

    /// Adds a session with so many events, a multiple of [`ROUND`].
    pub(crate) fn session(&self, events: u64) -> Result<SessionId> {
        let id = SessionId::from_uuid(Uuid::now_v7());
        let view = SessionView::new(self.now, None, serde_json::Map::new());
        let mut state = State::new(id.clone(), view);
        let mut row = self.connection.prepare_cached(
            "INSERT INTO sessions (id, tenant, agent_id, agent_version, user_id, platform, created_at, title, metadata,
             status, stop_reason, usage, model_calls, updated_at, archived_at, last_sequence)
             VALUES (?, 'default', ?, 1, 'ada', 'api', ?, 'A session', '{}', 'idle', ?, ?, ?, ?, NULL, ?)",
        )?;
        // The key is known once the row is there, and the row once the log is folded, so the row comes twice.
        let at = i64::try_from(self.now.as_nanosecond())?;
        row.execute(params![id.as_str(), self.agent, at, None::<&str>, "{}", 0, at, 0])?;
        let key = self.connection.last_insert_rowid();
        for round in 0..events / ROUND {
            self.round(key, round * ROUND, &mut state)?;
        }
        let view = &state.view;
        let (reason, usage) =
            (serde_json::to_string(&view.stop_reason)?, serde_json::to_string(&view.usage)?);
        self.connection
            .prepare_cached("UPDATE sessions SET stop_reason = ?, usage = ?, model_calls = ?, last_sequence = ? WHERE key = ?")?
            .execute(params![reason, usage, view.model_calls as i64, view.last_sequence as i64, key])?;
        self.connection
            .prepare_cached("INSERT INTO checkpoints (session, sequence, state) VALUES (?, ?, ?)")?
            .execute(params![key, view.last_sequence as i64, serde_json::to_vec(&state)?])?;
        Ok(id)
    }

    fn round(&self, key: i64, after: u64, state: &mut State) -> Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO events (session, sequence, type, created_at, processed_at, payload) VALUES (?, ?, ?, ?, ?, ?)",
        )?;
        let at = i64::try_from(self.now.as_nanosecond())?;
        for (sequence, payload) in (after + 1..).zip(round(after)) {
            let (name, text) = (payload.type_name(), serde_json::to_string(&payload)?);
            insert.execute(params![key, sequence as i64, name, at, at, text])?;
            let session_id = state.session_id.clone();
            let (created_at, processed_at) = (self.now, Some(self.now));
            state.apply(&Event { session_id, sequence, created_at, processed_at, payload });
        }
        Ok(())
    }

    /// Leaves the database as a server leaves it.
    pub(crate) fn finish(self) -> Result<()> {
        self.connection.execute_batch("COMMIT")?;
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        self.connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

fn round(after: u64) -> [Payload; ROUND as usize] {
    let said = "About forty words of an answer stand here, so that a row has the size of an ordinary one. "
        .repeat(3);
    let [good_start @ .., good_call] = opening(after + 1);
    let [bad_start @ .., bad_call] = opening(after + 7);
    let usage = Usage { input_tokens: 900, output_tokens: 60, ..Usage::default() };
    let finished = ModelFinished { call: 1, model: "openai/stub".into(), usage, ..ModelFinished::default() };
    let idle = |stop_reason| Payload::StatusIdle(StatusIdle { stop_reason, takes_up: Vec::new() });
    let failed = StopReason::Error { code: "unreachable".into(), message: "The model was not there.".into() };
    let [good_message, good_running] = good_start;
    let [bad_message, bad_running] = bad_start;
    [
        good_message,
        good_running,
        good_call,
        Payload::ModelFinished(finished),
        Payload::AgentMessage(AgentMessage { text: said }),
        idle(StopReason::end_turn()),
        bad_message,
        bad_running,
        bad_call,
        idle(failed),
    ]
}

/// How every turn begins.
pub(crate) fn opening(sequence: u64) -> [Payload; 3] {
    let text = "Tell me something that takes about two hundred words, please, and no more than that.";
    [
        Payload::UserMessage(UserMessage::new(vec![Block::text(text)])),
        Payload::StatusRunning {},
        Payload::ModelStarted(ModelStarted { call: 1, takes_up: vec![sequence] }),
    ]
}
