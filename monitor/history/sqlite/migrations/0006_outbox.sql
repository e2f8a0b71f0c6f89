-- Commands on their way out, and what became of them (store.Command). Times are µs since 1970 UTC.
CREATE TABLE outbox (
	command   INTEGER PRIMARY KEY AUTOINCREMENT,
	first     INTEGER NOT NULL, -- first command of the same order
	schema    INTEGER NOT NULL, -- of payload
	kind      TEXT NOT NULL,
	grp       TEXT NOT NULL,    -- what commands are sent in order within
	target    TEXT NOT NULL,
	summary   TEXT NOT NULL,
	payload   BLOB NOT NULL,
	task      TEXT NOT NULL,    -- id, empty if none or many
	actor     TEXT NOT NULL,
	state     TEXT NOT NULL,    -- store.CommandState
	attempts  INTEGER NOT NULL,
	deferrals INTEGER NOT NULL,
	error     TEXT NOT NULL,    -- the last one, empty if there was none
	expected  TEXT NOT NULL,    -- JSON: names of workers
	answers   TEXT NOT NULL,    -- JSON: answer
	created   INTEGER NOT NULL,
	due       INTEGER NOT NULL,
	expires   INTEGER,          -- NULL is never
	claimed   INTEGER,
	sent      INTEGER,
	done      INTEGER           -- when the state became final
) STRICT;

-- What a relay looks for.
CREATE INDEX outbox_open ON outbox (schema, grp, state) WHERE state IN ('in_flight', 'pending');
CREATE INDEX outbox_expiring ON outbox (expires) WHERE state = 'pending' AND expires IS NOT NULL;
CREATE INDEX outbox_failing ON outbox (error) WHERE state IN ('dead', 'pending') AND error <> '';

-- What lists are filtered by, and what goes first.
CREATE INDEX outbox_by_state ON outbox (state);
CREATE INDEX outbox_by_first ON outbox (first);
CREATE INDEX outbox_by_kind ON outbox (kind);
CREATE INDEX outbox_by_task ON outbox (task) WHERE task <> '';
CREATE INDEX outbox_by_actor ON outbox (actor);
CREATE INDEX outbox_by_end ON outbox (done) WHERE done IS NOT NULL;

-- How many commands are in a state.
CREATE TABLE outbox_counts (
	state    TEXT PRIMARY KEY,
	commands INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER outbox_added AFTER INSERT ON outbox BEGIN
	INSERT INTO outbox_counts (state, commands) VALUES (NEW.state, 1)
		ON CONFLICT (state) DO UPDATE SET commands = commands + 1;
END;

CREATE TRIGGER outbox_moved AFTER UPDATE OF state ON outbox WHEN NEW.state <> OLD.state BEGIN
	UPDATE outbox_counts SET commands = commands - 1 WHERE state = OLD.state;
	INSERT INTO outbox_counts (state, commands) VALUES (NEW.state, 1)
		ON CONFLICT (state) DO UPDATE SET commands = commands + 1;
END;

CREATE TRIGGER outbox_removed AFTER DELETE ON outbox BEGIN
	UPDATE outbox_counts SET commands = commands - 1 WHERE state = OLD.state;
END;

-- Workers that commands are for, or were answered by.
CREATE TABLE outbox_nodes (
	node    TEXT NOT NULL,
	command INTEGER NOT NULL,
	PRIMARY KEY (node, command)
) STRICT, WITHOUT ROWID;

-- What was given up, until somebody requeues or discards it.
CREATE TABLE dead_letters (
	command INTEGER PRIMARY KEY REFERENCES outbox ON DELETE CASCADE,
	reason  TEXT NOT NULL,
	at      INTEGER NOT NULL
) STRICT;

-- Requests that must not be carried out twice, for a day.
CREATE TABLE idempotency (
	key   TEXT PRIMARY KEY,
	print TEXT NOT NULL,    -- fingerprint of what was asked for
	first INTEGER NOT NULL, -- outbox.first of what it led to, 0 if it led to nothing
	at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (at);

-- Who has asked for what (store.Audit). Nothing is changed or removed, and every hash covers the one before.
CREATE TABLE audit (
	record   INTEGER PRIMARY KEY AUTOINCREMENT,
	at       INTEGER NOT NULL,
	actor    TEXT NOT NULL,
	remote   TEXT NOT NULL,
	action   TEXT NOT NULL,
	target   TEXT NOT NULL,
	detail   TEXT NOT NULL,
	commands INTEGER NOT NULL,
	first    INTEGER NOT NULL,
	hash     TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN
	SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN
	SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_added BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE record = NEW.record) BEGIN
	SELECT RAISE(ABORT, 'the audit log is append-only'); -- a replacement is no deletion to SQLite
END;
