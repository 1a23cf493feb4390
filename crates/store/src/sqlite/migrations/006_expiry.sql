-- When a session that waits for somebody no longer does. It is also in the session's stop_reason; this finds it.
ALTER TABLE sessions ADD COLUMN expires_at INTEGER;
CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL;
