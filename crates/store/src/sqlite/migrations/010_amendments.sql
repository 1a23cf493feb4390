-- Events that change what others say. Hardly any log has some, and every reader asks for them.
CREATE INDEX events_amending ON events (session, sequence)
    WHERE type IN ('session.events_deleted', 'session.event_metadata_changed');
