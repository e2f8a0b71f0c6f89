-- Groups of failed tasks: what tasks.failure refers to. All that is counted is counted in tasks.
CREATE TABLE failures (
	failure  INTEGER PRIMARY KEY, -- fingerprint.ID
	name     TEXT NOT NULL,       -- of the tasks
	type     TEXT NOT NULL,       -- fingerprint.Fingerprint
	message  TEXT NOT NULL,
	place    TEXT NOT NULL,
	resolved INTEGER              -- µs since 1970 UTC, NULL if it never was
) STRICT;

-- When a group failed, and its tasks in the order of lists.
CREATE INDEX tasks_failed ON tasks (failure, finished) WHERE failure IS NOT NULL;
CREATE INDEX tasks_by_failure ON tasks (failure, clock) WHERE failure IS NOT NULL;
