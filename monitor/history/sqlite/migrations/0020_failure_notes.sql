-- What people note about a group of failures.
ALTER TABLE failures ADD COLUMN note TEXT NOT NULL DEFAULT '';
ALTER TABLE failures ADD COLUMN note_by TEXT NOT NULL DEFAULT '';
ALTER TABLE failures ADD COLUMN note_at INTEGER;                   -- when the note was written, µs since 1970 UTC
ALTER TABLE failures ADD COLUMN assignee TEXT NOT NULL DEFAULT '';
ALTER TABLE failures ADD COLUMN assigned_at INTEGER;               -- when the assignee was set or removed last
