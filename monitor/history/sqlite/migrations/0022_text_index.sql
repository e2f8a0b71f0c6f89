-- An index of texts of our own takes the place of FTS5's, which took more time than all else that a task costs.
DROP TABLE texts;
DROP INDEX tasks_unindexed;
ALTER TABLE tasks DROP COLUMN indexed;
DELETE FROM meta WHERE key = 'gone';

-- Trigrams of args, kwargs, results, exceptions and tracebacks of some tasks of a block: tasks.task / 65536 (trigram.Segment).
CREATE TABLE text_segments (
	segment INTEGER PRIMARY KEY AUTOINCREMENT,
	block   INTEGER NOT NULL,
	tasks   INTEGER NOT NULL,
	head    BLOB NOT NULL
) STRICT;
CREATE INDEX text_segments_by_block ON text_segments (block);
CREATE TABLE text_pages (
	page INTEGER PRIMARY KEY, -- segment * 65536 + its place in the segment
	body BLOB NOT NULL
) STRICT;

-- How many tasks of a block were removed, or changed, since its segments were rewritten.
CREATE TABLE text_stale (
	block INTEGER PRIMARY KEY,
	tasks INTEGER NOT NULL
) STRICT;

-- Tasks up to meta.indexed that are not indexed as they are now. All beyond it are not either.
CREATE TABLE unindexed (
	task  INTEGER PRIMARY KEY,
	final INTEGER NOT NULL, -- as in tasks
	clock INTEGER NOT NULL
) STRICT;
CREATE INDEX unindexed_by_clock ON unindexed (final, clock);
