//! Feeds the full-text index so that a message which kills the process does not kill it for ever.
//!
//! That a batch is begun is committed before the batch is. A process that finds such a note when it opens the store knows
//! that the one before it died in the middle of the batch. After three deaths the batch is set aside: it is indexed one
//! message at a time, when whoever looks after the store says so, and a message that kills the process alone is left out.

use futures_util::future::BoxFuture;
use rusqlite::{Connection, params};

use super::columns::failed;
use super::{SqliteStore, message_index, statement};
use crate::contract::IndexRecovery;
use crate::error::Result;

/// How many processes have to die in the middle of a batch until it is set aside.
const DEATHS: u32 = 3;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Not enough messages wait.
    Nothing,
    /// Messages wait, and are set aside.
    SetAside,
    /// There may be more to do.
    More,
}

/// The batch that was begun last.
struct Mark {
    first: i64,
    begun: bool,
    deaths: u32,
    left: i64,
}

impl IndexRecovery for SqliteStore {
    fn index_is_set_aside(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.readers().read(|connection| {
            let mark = mark(connection).map_err(failed("look for messages that are set aside"))?;
            Ok(mark.is_some_and(|mark| mark.deaths >= DEATHS))
        }))
    }

    fn index_one_by_one(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let step = |connection: &Connection| index_one(connection).map_err(failed("index a message"));
            while self.writer().write(step).await? {}
            Ok(())
        })
    }
}

/// Notes that the last process died in the middle of a batch, if it did. Called once, when the store is opened.
pub(super) fn count_death(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "UPDATE index_attempt SET begun = 0, deaths = deaths + 1 WHERE begun = 1";
    statement::execute(connection, sql, []).map(drop)
}

/// Notes that a batch is begun, or indexes the one that was, if at least `fewest` messages wait. Each step is a
/// transaction of its own.
pub(super) fn step(connection: &Connection, fewest: i64) -> Result<Step> {
    if message_index::waiting(connection, fewest)? < fewest {
        return Ok(Step::Nothing);
    }
    let run = || {
        let Some(head) = head(connection)? else { return Ok(Step::Nothing) };
        match mark(connection)?.filter(|mark| mark.first == head) {
            Some(mark) if mark.deaths >= DEATHS => return Ok(Step::SetAside),
            Some(mark) if mark.begun => {
                message_index::index(connection, message_index::BATCH)?;
                clear(connection)?;
            }
            mark => set(connection, &Mark { first: head, begun: true, ..mark.unwrap_or(Mark::FRESH) })?,
        }
        Ok(Step::More)
    };
    run().map_err(failed::<rusqlite::Error>("index messages"))
}

/// Goes one step on with messages that are set aside, and says whether there is more.
fn index_one(connection: &Connection) -> rusqlite::Result<bool> {
    let Some(mark) = mark(connection)?.filter(|mark| mark.deaths >= DEATHS) else { return Ok(false) };
    if head(connection)? != Some(mark.first) {
        // Its session was deleted in the meantime.
        return next(connection, &mark);
    }
    if mark.deaths > DEATHS {
        tracing::error!(
            message = mark.first,
            "a message that kills the server is left out of the search index"
        );
        statement::execute(connection, "DELETE FROM unindexed_messages WHERE id = ?", [mark.first])?;
        return next(connection, &Mark { begun: false, ..mark });
    }
    if !mark.begun {
        set(connection, &Mark { begun: true, ..mark })?;
        return Ok(true);
    }
    message_index::index(connection, 1)?;
    next(connection, &mark)
}

/// Moves on to the next message, in the transaction that dealt with the one before it.
fn next(connection: &Connection, mark: &Mark) -> rusqlite::Result<bool> {
    match head(connection)? {
        Some(first) if mark.left > 1 => {
            set(connection, &Mark { first, deaths: DEATHS, left: mark.left - 1, ..*mark })?;
            Ok(true)
        }
        _ => clear(connection).map(|()| false),
    }
}

impl Mark {
    const FRESH: Mark = Mark { first: 0, begun: false, deaths: 0, left: message_index::BATCH };
}

fn head(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT id FROM unindexed_messages ORDER BY id LIMIT 1";
    statement::first(connection, sql, [], |row| row.get(0))
}

fn mark(connection: &Connection) -> rusqlite::Result<Option<Mark>> {
    statement::first(connection, "SELECT first, begun, deaths, left FROM index_attempt", [], |row| {
        Ok(Mark { first: row.get(0)?, begun: row.get(1)?, deaths: row.get(2)?, left: row.get(3)? })
    })
}

fn set(connection: &Connection, mark: &Mark) -> rusqlite::Result<()> {
    clear(connection)?;
    let sql = "INSERT INTO index_attempt (first, begun, deaths, left) VALUES (?, ?, ?, ?)";
    let values = params![mark.first, mark.begun, mark.deaths, mark.left];
    statement::execute(connection, sql, values).map(drop)
}

fn clear(connection: &Connection) -> rusqlite::Result<()> {
    statement::execute(connection, "DELETE FROM index_attempt", []).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrate;

    /// A database in which this many messages wait. Their sessions are gone, which is all the same here.
    fn database(messages: i64) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        migrate::migrate(&connection, migrate::known_version()).unwrap();
        for id in 1..=messages {
            connection.execute("INSERT INTO unindexed_messages (id) VALUES (?)", [id]).unwrap();
        }
        connection
    }

    fn left(connection: &Connection) -> Vec<i64> {
        statement::all(connection, "SELECT id FROM unindexed_messages ORDER BY id", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn a_batch_is_noted_before_it_is_indexed() {
        let connection = database(3);
        assert_eq!(step(&connection, 4).unwrap(), Step::Nothing);
        assert_eq!(step(&connection, 1).unwrap(), Step::More);
        assert!(mark(&connection).unwrap().is_some_and(|mark| mark.begun && mark.first == 1));
        assert_eq!(left(&connection), [1, 2, 3]);
        assert_eq!(step(&connection, 1).unwrap(), Step::More);
        assert_eq!(left(&connection), Vec::<i64>::new());
        assert!(mark(&connection).unwrap().is_none());
        assert_eq!(step(&connection, 1).unwrap(), Step::Nothing);
    }

    #[test]
    fn a_batch_that_three_processes_died_of_is_indexed_one_by_one() {
        let connection = database(4);
        for _ in 0..3 {
            assert_eq!(step(&connection, 1).unwrap(), Step::More);
            count_death(&connection).unwrap();
        }
        assert_eq!(step(&connection, 1).unwrap(), Step::SetAside);
        // The first message goes well. The process dies of the second.
        for _ in 0..2 {
            assert!(index_one(&connection).unwrap());
        }
        assert_eq!(left(&connection), [2, 3, 4]);
        count_death(&connection).unwrap();
        assert_eq!(step(&connection, 1).unwrap(), Step::SetAside);
        assert!(index_one(&connection).unwrap());
        assert_eq!(left(&connection), [3, 4], "the message is left out");
        while index_one(&connection).unwrap() {}
        assert_eq!(left(&connection), Vec::<i64>::new());
        assert!(mark(&connection).unwrap().is_none());
    }

    #[test]
    fn a_death_while_nothing_was_begun_counts_for_nothing() {
        let connection = database(2);
        (0..5).for_each(|_| count_death(&connection).unwrap());
        assert_eq!(step(&connection, 1).unwrap(), Step::More);
        assert_eq!(step(&connection, 1).unwrap(), Step::More);
        assert_eq!(left(&connection), Vec::<i64>::new());
    }
}
