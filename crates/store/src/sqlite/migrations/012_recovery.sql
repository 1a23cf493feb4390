-- The process that runs, or the last one that did. Clocks may jump, so it says itself whether it lived for long.
CREATE TABLE last_start (
    key        INTEGER PRIMARY KEY CHECK (key = 1),
    started_at INTEGER NOT NULL,
    outlived   INTEGER NOT NULL,
    clean      INTEGER NOT NULL
) STRICT;

-- Work that was under way when processes died. Hardly ever are there any rows.
CREATE TABLE recovered_work (
    kind        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    session_id  TEXT,
    position    TEXT NOT NULL,
    starts      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    told_before INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, id)
) STRICT, WITHOUT ROWID;

-- The batch of messages that is being put into the full-text index, by its first message: whether that was begun, how many
-- processes died of it, and how many messages are still to be indexed one by one because of that.
CREATE TABLE index_attempt (
    first  INTEGER PRIMARY KEY,
    begun  INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    left   INTEGER NOT NULL
) STRICT;
