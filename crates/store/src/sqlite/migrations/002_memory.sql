-- An agent with a user: what is kept across sessions belongs to one of these.
CREATE TABLE scopes (
    key      INTEGER PRIMARY KEY,
    tenant   TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    UNIQUE (tenant, agent_id, user_id)
) STRICT;

-- Notes are few and bounded, and always read and written together.
CREATE TABLE memories (
    scope    INTEGER PRIMARY KEY REFERENCES scopes (key),
    revision INTEGER NOT NULL,
    entries  TEXT NOT NULL
) STRICT;

CREATE TABLE skills (
    key         INTEGER PRIMARY KEY,
    scope       INTEGER NOT NULL REFERENCES scopes (key),
    name        TEXT NOT NULL,
    description TEXT NOT NULL,
    content     TEXT NOT NULL,
    revision    INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (scope, name)
) STRICT;

CREATE TABLE skill_files (
    skill   INTEGER NOT NULL REFERENCES skills (key) ON DELETE CASCADE,
    path    TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (skill, path)
) STRICT;

-- Full text of the messages of sessions that have a user. The row's id is made of the session's key and the sequence
-- (see message_index.rs); the text itself is in the log, and all of this can be made again from there.
CREATE VIRTUAL TABLE message_index USING fts5 (
    label, text, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
);

-- Parts of the index are joined less often than by default, which halves what feeding it costs.
INSERT INTO message_index (message_index, rank) VALUES ('automerge', 12);

-- Messages that are in the log and not yet in the index.
CREATE TABLE unindexed_messages (
    id INTEGER PRIMARY KEY
) STRICT;

INSERT INTO unindexed_messages (id)
SELECT events.session << 28 | events.sequence FROM events JOIN sessions ON sessions.key = events.session
WHERE sessions.user_id IS NOT NULL AND events.type IN ('user.message', 'agent.message') AND events.sequence < 1 << 28;
