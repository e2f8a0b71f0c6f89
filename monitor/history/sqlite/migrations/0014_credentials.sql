-- +goose Up

-- Who is signed in with a browser (history.Session), and API tokens (history.Token). Secrets are kept as SHA-256 only. Times are µs
-- since 1970 UTC.
CREATE TABLE sessions (
	hash     BLOB PRIMARY KEY, -- of what the cookie holds
	identity TEXT NOT NULL,    -- JSON, of package auth
	created  INTEGER NOT NULL,
	seen     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
	token    INTEGER PRIMARY KEY AUTOINCREMENT,
	hash     BLOB NOT NULL UNIQUE,
	name     TEXT NOT NULL,
	identity TEXT NOT NULL,    -- JSON: its owner, of package auth; empty for tokens made on the command line
	role     TEXT NOT NULL,
	payload  INTEGER NOT NULL, -- whether arguments and results may be seen with it
	created  INTEGER NOT NULL,
	expires  INTEGER NOT NULL,
	used     INTEGER           -- NULL if it never was
) STRICT;
