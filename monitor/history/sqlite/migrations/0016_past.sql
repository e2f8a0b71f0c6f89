-- When Umbel received the first event of a task, µs since 1970 UTC by its own clock; NULL where it was not kept yet.
ALTER TABLE tasks ADD COLUMN first_receipt INTEGER;

-- Of a task with two receipts or more, the smallest of the blocks of 2^k µs that holds the first and the last: the number k,
-- from 16 on, times 2^40, plus the number of the block. The tasks that an instant divides are in one of the 36 blocks that
-- hold it.
ALTER TABLE tasks ADD COLUMN block INTEGER;
CREATE INDEX tasks_by_block ON tasks (block, first_receipt, last_receipt) WHERE block IS NOT NULL;

-- What is not a task, as it was: of each checkpoint the receiver's clock, now and then counts of tasks and workers too.
CREATE TABLE snapshots (
	at    INTEGER PRIMARY KEY, -- µs since 1970 UTC
	clock INTEGER NOT NULL,
	body  BLOB                 -- history.SnapshotBody as JSON, compressed; NULL if it was not kept
) STRICT;

-- From when on receipts are kept.
INSERT INTO meta (key, value) SELECT 'receipts', CAST(unixepoch('subsec') * 1000000 AS INTEGER) WHERE EXISTS (SELECT 1 FROM tasks);
