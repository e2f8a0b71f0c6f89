-- Relays, which send commands, of the process that has the file open.
CREATE TABLE relays (relay TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
ALTER TABLE outbox ADD COLUMN relay TEXT NOT NULL DEFAULT ''; -- that has claimed the command last
