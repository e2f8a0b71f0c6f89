-- Rules by which Umbel alerts (history.AlertRule). Times are µs since 1970 UTC.
CREATE TABLE alert_rules (
	rule       INTEGER PRIMARY KEY AUTOINCREMENT,
	name       TEXT NOT NULL,
	enabled    INTEGER NOT NULL,
	definition BLOB NOT NULL,    -- JSON, of package alert
	receivers  TEXT NOT NULL,    -- JSON: names
	muted      INTEGER,          -- until when nobody is notified, NULL if not
	muted_by   TEXT NOT NULL,
	saved      INTEGER NOT NULL,
	saved_by   TEXT NOT NULL
) STRICT;

-- When they fired (history.AlertFiring).
CREATE TABLE alert_firings (
	firing   INTEGER PRIMARY KEY AUTOINCREMENT,
	rule     INTEGER NOT NULL,
	name     TEXT NOT NULL,      -- of the rule, as it was then
	subject  TEXT NOT NULL,      -- task name, worker, queue or id; empty if there is one for all
	began    INTEGER NOT NULL,
	ended    INTEGER,            -- NULL while it fires
	value    REAL NOT NULL,
	evidence BLOB NOT NULL,      -- JSON, of package alert
	notified INTEGER NOT NULL,   -- whether it was notified that it began
	acked    INTEGER,            -- when a user took it up
	acked_by TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX alert_firings_open ON alert_firings (rule, subject) WHERE ended IS NULL;
CREATE INDEX alert_firings_by_rule ON alert_firings (rule);
CREATE INDEX alert_firings_by_end ON alert_firings (ended) WHERE ended IS NOT NULL;

-- What rules are judged by: one record of each minute, never changed.
CREATE TABLE alert_records (
	at     INTEGER PRIMARY KEY, -- end
	record BLOB NOT NULL        -- of package alert
) STRICT;
