-- Tags that group agents, customers and context variables. The key is part of the id that others see.
CREATE TABLE tags (
    key      INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT NOT NULL,
    name     TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE tagged (
    tenant   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    id       TEXT NOT NULL,
    tag      TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, id, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX tagged_by ON tagged (tenant, tag);
