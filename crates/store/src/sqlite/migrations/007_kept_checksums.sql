-- Checksums of what agents keep for users. Rows from before this have none and are not checked.
ALTER TABLE memories ADD COLUMN checksum INTEGER;
-- The content has one of its own, so that the rest can be listed and checked without reading it.
ALTER TABLE skills ADD COLUMN content_checksum INTEGER;
ALTER TABLE skills ADD COLUMN checksum INTEGER;
ALTER TABLE skill_files ADD COLUMN content_checksum INTEGER;
ALTER TABLE skill_files ADD COLUMN checksum INTEGER;
