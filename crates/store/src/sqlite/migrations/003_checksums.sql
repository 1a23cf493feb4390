-- SQLite keeps no checksums, so a byte that changed on the disk would be served as the truth. Rows from before this
-- have none and are not checked.

ALTER TABLE agents ADD COLUMN checksum INTEGER;
ALTER TABLE agent_versions ADD COLUMN checksum INTEGER;
-- What never changes, and what every append writes anew.
ALTER TABLE sessions ADD COLUMN header_checksum INTEGER;
ALTER TABLE sessions ADD COLUMN view_checksum INTEGER;
ALTER TABLE events ADD COLUMN checksum INTEGER;
ALTER TABLE checkpoints ADD COLUMN checksum INTEGER;
ALTER TABLE grants ADD COLUMN checksum INTEGER;
ALTER TABLE keys ADD COLUMN checksum INTEGER;
