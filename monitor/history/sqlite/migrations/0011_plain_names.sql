ALTER TABLE tasks RENAME COLUMN marks TO flags; -- 1 redelivered, 2 truncated, 4 retried, 8 renamed, 16 lost, 32 orphaned, 64 dismissed
ALTER TABLE tasks RENAME COLUMN heard TO last_receipt;
ALTER TABLE minutes RENAME TO rollups;

DROP INDEX tasks_marked;
CREATE INDEX tasks_by_flags ON tasks (flags, clock) WHERE flags <> 0;

UPDATE outbox SET state = 'no_reply' WHERE state = 'silent';
