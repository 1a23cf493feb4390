-- Whom conversations are for. Sessions name a customer as their user, and stay when the customer goes.
CREATE TABLE customers (
    tenant     TEXT NOT NULL,
    id         TEXT NOT NULL,
    name       TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    checksum   INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX customers_newest ON customers (tenant, created_at, id);

-- What can be known about customers. The key is part of the id that others see, and is never used twice.
CREATE TABLE context_variables (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    description TEXT,
    checksum    INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE variable_values (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    variable   INTEGER NOT NULL REFERENCES context_variables (key) ON DELETE CASCADE,
    customer   TEXT NOT NULL,
    data       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    checksum   INTEGER NOT NULL,
    UNIQUE (variable, customer)
) STRICT;

CREATE INDEX variable_values_of_customer ON variable_values (customer);
