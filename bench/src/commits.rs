//! What the disk asks for a turn: the same rows, in the same tables, in two commits, by nothing but SQLite.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use petasos_core::event::{AgentMessage, ModelFinished, Payload, StatusIdle, StopReason};
use petasos_core::model::Usage;
use rusqlite::{Connection, params};

use crate::fill::opening;
use crate::stub::TOKEN;

/// Turns per session, as in the conversations that are measured.
const TURNS: u64 = 10;
const EVENTS: u64 = 6;

/// A database with the server's tables, and nobody else's.
pub(crate) struct Commits {
    connection: Connection,
    turns: u64,
    answer: String,
}

impl Commits {
    pub(crate) fn open(directory: &Path, tokens: usize) -> Result<Self> {
        let connection = Connection::open(directory.join("commits.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // As often as the server does it, so that both pay for it alike.
        connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
        connection.execute_batch(include_str!("../../crates/store/src/sqlite/migrations/001_start.sql"))?;
        Ok(Commits { connection, turns: 0, answer: "lore".repeat(tokens * TOKEN / 4) })
    }

    /// Writes what a plain turn writes, and says how long its two commits took.
    pub(crate) fn turn(&mut self) -> Result<Duration> {
        let (session, after) = (self.turns / TURNS + 1, self.turns % TURNS * EVENTS);
        if after == 0 {
            self.connection.execute(
                "INSERT INTO sessions VALUES (?1, ?2, 'default', 'agent_1', 1, 'ada', 'api', ?1, 'A session', '{}',
                 'idle', NULL, '{}', 0, 0, NULL, 0)",
                params![session as i64, format!("session_{session:032x}")],
            )?;
        }
        self.turns += 1;
        let usage = Usage { input_tokens: 900, output_tokens: 200, ..Usage::default() };
        let finished =
            ModelFinished { call: 1, model: "openai/stub".into(), usage, ..ModelFinished::default() };
        let end = [
            Payload::ModelFinished(finished),
            Payload::AgentMessage(AgentMessage { text: self.answer.clone() }),
            Payload::StatusIdle(StatusIdle { stop_reason: StopReason::end_turn(), takes_up: Vec::new() }),
        ];
        let started = Instant::now();
        self.commit(session, after, &opening(after + 1), None)?;
        // The fold of a session is about so long.
        self.commit(session, after + 3, &end, Some(&[b'x'; 700]))?;
        Ok(started.elapsed())
    }

    fn commit(&self, session: u64, after: u64, events: &[Payload], fold: Option<&[u8]>) -> Result<()> {
        let statement = |sql: &str| self.connection.prepare_cached(sql);
        statement("BEGIN IMMEDIATE")?.execute([])?;
        let mut last = after as i64;
        for payload in events {
            last += 1;
            let text = serde_json::to_string(payload)?;
            statement("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)")?.execute(params![
                session as i64,
                last,
                payload.type_name(),
                last,
                last,
                text
            ])?;
        }
        statement(
            "UPDATE sessions SET status = ?, updated_at = ?, last_sequence = ?, usage = '{}' WHERE key = ?",
        )?
        .execute(params![
            if fold.is_some() { "idle" } else { "running" },
            last,
            last,
            session as i64
        ])?;
        if let Some(fold) = fold {
            statement("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)")?.execute(params![
                session as i64,
                last,
                fold
            ])?;
        }
        statement("COMMIT")?.execute([])?;
        Ok(())
    }
}
