-- How far umbel redact --rewrite came; no row if it is not interrupted.
CREATE TABLE edit (position text NOT NULL);
