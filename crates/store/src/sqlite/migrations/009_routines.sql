CREATE TABLE routines (
    tenant            TEXT NOT NULL,
    id                TEXT NOT NULL,
    definition        TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    scheduled_through INTEGER NOT NULL,
    checksum          INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Rows outlive the routines and the sessions that they name.
CREATE TABLE runs (
    key             INTEGER PRIMARY KEY,
    id              TEXT NOT NULL UNIQUE,
    tenant          TEXT NOT NULL,
    routine_id      TEXT NOT NULL,
    session_id      TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    given           TEXT NOT NULL,
    created_at      INTEGER NOT NULL,
    deadline        INTEGER NOT NULL,
    status          TEXT NOT NULL,
    outcome         TEXT,
    started_at      INTEGER,
    completed_at    INTEGER,
    -- What never changes, and what moving on writes anew.
    checksum        INTEGER NOT NULL,
    state_checksum  INTEGER NOT NULL,
    -- Whether a session is to be removed when the run has been reported.
    leaves_session  INTEGER NOT NULL,
    UNIQUE (tenant, routine_id, idempotency_key)
) STRICT;

CREATE INDEX runs_newest ON runs (tenant, routine_id, created_at, id);
CREATE INDEX runs_waiting ON runs (session_id, key) WHERE status = 'accepted';
CREATE INDEX runs_unsettled ON runs (deadline) WHERE status IN ('accepted', 'running');
CREATE INDEX runs_leaving ON runs (key) WHERE leaves_session = 1 AND status IN ('succeeded', 'failed');
