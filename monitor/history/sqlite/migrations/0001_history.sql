-- What is said again and again: names of tasks, nodes, queues, states, origins.
CREATE TABLE symbols (
	symbol INTEGER PRIMARY KEY,
	text   TEXT NOT NULL UNIQUE
) STRICT;

-- One row a task: what filters and lists need. Times are µs since 1970 UTC, durations µs, NULL is unknown.
CREATE TABLE tasks (
	task        INTEGER PRIMARY KEY,
	id          ANY NOT NULL UNIQUE, -- 16 bytes of a UUID, or the text of any other id
	clock       INTEGER NOT NULL,    -- stamp of the newest event: repaired clock,
	micros      INTEGER NOT NULL,    -- timestamp,
	origin      INTEGER NOT NULL,    -- and symbol of its origin
	state       INTEGER NOT NULL,    -- symbol
	final       INTEGER NOT NULL,    -- 0 active, 1 succeeded, 2 failed, revoked or rejected
	name        INTEGER,             -- symbols
	worker      INTEGER,
	queue       INTEGER,
	client      INTEGER,
	exchange    INTEGER,
	routing_key INTEGER,
	root        ANY,                 -- as id; NULL if it is the task itself
	parent      ANY,                 -- as id
	sent        INTEGER,
	received    INTEGER,
	started     INTEGER,
	finished    INTEGER,
	updated     INTEGER NOT NULL,
	eta         INTEGER,
	expires     INTEGER,
	wait        INTEGER,
	run         INTEGER,
	retries     INTEGER,
	marks       INTEGER NOT NULL,    -- 1 redelivered, 2 truncated, 4 retried
	failure     INTEGER,             -- group of a failed task
	indexed     INTEGER NOT NULL     -- 1 if its text is in texts
) STRICT;

-- All events of a task (state.Unsaved).
CREATE TABLE events (
	task INTEGER PRIMARY KEY,
	body BLOB NOT NULL
) STRICT;

-- What was active is read at every start.
CREATE INDEX tasks_active ON tasks (clock, micros) WHERE final = 0;

CREATE TABLE workers (
	name TEXT PRIMARY KEY,
	body TEXT NOT NULL -- JSON (state.Cluster.SaveWorkers)
) STRICT, WITHOUT ROWID;

-- Events that are not all in tasks yet (state.AppendEvent).
CREATE TABLE journal (
	entry INTEGER PRIMARY KEY AUTOINCREMENT,
	body  BLOB NOT NULL
) STRICT;

-- clock: the receiver's; checkpoint: the last journal entry that workers and minutes have counted.
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- Saved views of the list of tasks (store.View).
CREATE TABLE views (
	view  INTEGER PRIMARY KEY AUTOINCREMENT,
	name  TEXT NOT NULL,
	query TEXT NOT NULL,
	sort  TEXT NOT NULL,
	cols  TEXT NOT NULL
) STRICT;

-- Trigrams of args, kwargs, results, exceptions and tracebacks, by tasks.task.
CREATE VIRTUAL TABLE texts USING fts5(body, content='', contentless_delete=1, detail=none, tokenize='trigram');
