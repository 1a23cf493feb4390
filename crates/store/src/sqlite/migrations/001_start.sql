-- Times are nanoseconds since 1970 in UTC, so that their order is exact.

CREATE TABLE agents (
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    version     INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    archived_at INTEGER,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX agents_newest ON agents (tenant, created_at, id) WHERE archived_at IS NULL;

-- Definitions can be large, which a table without rowid stores badly.
CREATE TABLE agent_versions (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    version    INTEGER NOT NULL,
    definition TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id, version),
    FOREIGN KEY (tenant, id) REFERENCES agents (tenant, id)
) STRICT;

-- The key stands for the id in the tables that refer to it. It is never used twice (AUTOINCREMENT), because the
-- log of a removed session is swept away later, by its key.
CREATE TABLE sessions (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    tenant        TEXT NOT NULL,
    agent_id      TEXT NOT NULL,
    agent_version INTEGER NOT NULL,
    user_id       TEXT,
    platform      TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    title         TEXT,
    metadata      TEXT NOT NULL,
    status        TEXT NOT NULL,
    stop_reason   TEXT,
    usage         TEXT NOT NULL,
    model_calls   INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    archived_at   INTEGER,
    last_sequence INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_newest ON sessions (tenant, created_at, id);
CREATE INDEX sessions_of_agent ON sessions (tenant, agent_id, created_at, id);
CREATE INDEX sessions_of_user ON sessions (tenant, user_id, created_at, id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_running ON sessions (created_at, id) WHERE status = 'running';

CREATE TABLE events (
    session      INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,
    type         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    processed_at INTEGER,
    payload      TEXT NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
    session  INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    state    BLOB NOT NULL
) STRICT;

-- Sessions that are gone, and whose events still have to go.
CREATE TABLE removed_sessions (
    session INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE grants (
    tenant     TEXT NOT NULL,
    agent_id   TEXT NOT NULL,
    user_id    TEXT NOT NULL,
    tool       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent_id, user_id, tool)
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    id         TEXT NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    hash       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
