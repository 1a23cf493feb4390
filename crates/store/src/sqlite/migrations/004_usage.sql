-- What agents used on each day (in UTC, as YYYY-MM-DD). It stays when their sessions go.
CREATE TABLE agent_usage (
    tenant      TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    day         TEXT NOT NULL,
    model_calls INTEGER NOT NULL,
    usage       TEXT NOT NULL,
    checksum    INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent_id, day)
) STRICT, WITHOUT ROWID;
