-- What is on its way out, and what became of it. Rows outlive the sessions that they tell about.
-- Of the pending events of a session only the first has a time at which it is due; those that are made again
-- (replay_of) and callbacks wait for nothing.
CREATE TABLE deliveries (
    key            INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    tenant         TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    run_id         TEXT,
    event_offset   INTEGER,
    webhook_id     TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    replay_of      TEXT,
    url            TEXT NOT NULL,
    status         TEXT NOT NULL,
    attempts       TEXT NOT NULL,
    tries          INTEGER NOT NULL,
    due_at         INTEGER,
    -- What never changes, and what every attempt writes anew.
    checksum       INTEGER NOT NULL,
    state_checksum INTEGER NOT NULL
) STRICT;

CREATE INDEX deliveries_newest ON deliveries (tenant, created_at, id);
CREATE INDEX deliveries_of_session ON deliveries (session_id, created_at, id);
CREATE INDEX deliveries_of_run ON deliveries (run_id, created_at, id) WHERE run_id IS NOT NULL;
CREATE INDEX deliveries_not_delivered ON deliveries (status, created_at, id) WHERE status <> 'delivered';
CREATE INDEX deliveries_settled ON deliveries (created_at) WHERE status <> 'pending';
CREATE INDEX deliveries_waiting ON deliveries (session_id, key) WHERE status = 'pending';
CREATE INDEX deliveries_due_first ON deliveries (due_at) WHERE due_at IS NOT NULL AND tries = 0;
CREATE INDEX deliveries_due_again ON deliveries (due_at) WHERE due_at IS NOT NULL AND tries > 0;

-- Apart from the rest, which changes with every attempt.
CREATE TABLE delivery_bodies (
    delivery INTEGER PRIMARY KEY REFERENCES deliveries (key) ON DELETE CASCADE,
    body     BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;
