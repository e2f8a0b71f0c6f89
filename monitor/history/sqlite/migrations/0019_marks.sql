-- Moments that people marked (history.Mark). Times are µs since 1970 UTC.
CREATE TABLE marks (
	mark    INTEGER PRIMARY KEY AUTOINCREMENT,
	at      INTEGER NOT NULL,
	text    TEXT NOT NULL,
	link    TEXT NOT NULL,
	service TEXT NOT NULL,
	version TEXT NOT NULL,
	actor   TEXT NOT NULL
) STRICT;
CREATE INDEX marks_by_time ON marks (at);
