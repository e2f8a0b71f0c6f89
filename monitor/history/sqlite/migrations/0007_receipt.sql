-- When Umbel received the newest event of a task, µs since 1970 UTC by its own clock: retention goes by that.
-- NULL where it was not kept yet.
ALTER TABLE tasks ADD COLUMN heard INTEGER;

DROP INDEX tasks_by_end;
CREATE INDEX tasks_by_receipt ON tasks (final, coalesce(heard, finished, updated));
