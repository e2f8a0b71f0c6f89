-- What package tables stores. Times are in µs since 1970 UTC.

-- Commands until they are sent, and what became of them (history.Command).
CREATE TABLE outbox (
    command bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    first bigint NOT NULL, -- first command of the same request
    schema integer NOT NULL, -- of payload
    kind text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL, -- what commands are sent in order within
    target text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    task text COLLATE "C" NOT NULL, -- id, empty if none or several
    actor text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL, -- history.CommandState
    attempts integer NOT NULL,
    deferrals integer NOT NULL,
    error text COLLATE "C" NOT NULL, -- the last one, empty if there was none
    expected text NOT NULL, -- JSON: names of workers
    answers text NOT NULL, -- JSON: replies
    created bigint NOT NULL,
    due bigint NOT NULL,
    expires bigint, -- NULL is never
    claimed bigint,
    sent bigint,
    done bigint -- when the state became final
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- What a relay looks for.
CREATE INDEX outbox_open ON outbox (schema, grp, state, command) WHERE state IN ('in_flight', 'pending');
CREATE INDEX outbox_expiring ON outbox (expires) WHERE state = 'pending' AND expires IS NOT NULL;
CREATE INDEX outbox_failing ON outbox (error) WHERE state IN ('dead', 'pending') AND error <> '';

-- What lists are filtered by, and what goes first.
CREATE INDEX outbox_by_state ON outbox (state, command);
CREATE INDEX outbox_by_first ON outbox (first, command);
CREATE INDEX outbox_by_kind ON outbox (kind, command);
CREATE INDEX outbox_by_task ON outbox (task, command) WHERE task <> '';
CREATE INDEX outbox_by_actor ON outbox (actor, command);
CREATE INDEX outbox_by_end ON outbox (done) WHERE done IS NOT NULL;

-- How many commands are in a state is the sum of these rows. A row for each change, so that transactions do not wait for each
-- other; they are added up now and then.
CREATE TABLE outbox_counts (
    state text COLLATE "C" NOT NULL,
    commands bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION outbox_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO outbox_counts (state, commands) VALUES (OLD.state, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO outbox_counts (state, commands) VALUES (NEW.state, 1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER outbox_added AFTER INSERT OR DELETE ON outbox
    FOR EACH ROW EXECUTE FUNCTION outbox_counted();
CREATE TRIGGER outbox_moved AFTER UPDATE OF state ON outbox
    FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION outbox_counted();

-- Workers that commands are for, or were answered by.
CREATE TABLE outbox_nodes (
    node text COLLATE "C",
    command bigint,
    PRIMARY KEY (node, command)
);

-- What was given up, until somebody requeues or discards it.
CREATE TABLE dead_letters (
    command bigint PRIMARY KEY REFERENCES outbox ON DELETE CASCADE,
    reason text NOT NULL,
    at bigint NOT NULL
);

-- Requests that must not be carried out twice, for a day.
CREATE TABLE idempotency (
    key text COLLATE "C" PRIMARY KEY,
    print text COLLATE "C" NOT NULL, -- fingerprint of what was asked for
    first bigint NOT NULL, -- outbox.first of what it led to, 0 if it led to nothing
    at bigint NOT NULL
);
CREATE INDEX idempotency_by_time ON idempotency (at);

-- Who has asked for what (history.AuditRecord). Nothing is changed or removed, and every hash covers the one before.
CREATE TABLE audit (
    record bigint PRIMARY KEY,
    at bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    remote text NOT NULL,
    action text COLLATE "C" NOT NULL,
    target text NOT NULL,
    detail text NOT NULL,
    commands bigint NOT NULL,
    first bigint NOT NULL,
    hash text NOT NULL,
    kind text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    method text NOT NULL,
    role text NOT NULL,
    endpoint text NOT NULL
);
CREATE INDEX audit_by_kind ON audit (kind, record);
CREATE INDEX audit_by_outcome ON audit (outcome, record);
CREATE INDEX audit_by_actor ON audit (actor, record);
CREATE INDEX audit_by_time ON audit (at);

-- The number of the last record, in one row, by which transactions that append wait for each other. A sequence would skip the
-- numbers of transactions that fail.
CREATE TABLE audit_end (record bigint NOT NULL);
INSERT INTO audit_end VALUES (0);

CREATE FUNCTION audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_unchanged BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_kept();
CREATE TRIGGER audit_kept BEFORE TRUNCATE ON audit EXECUTE FUNCTION audit_kept();

-- How full the outboxes of applications were: the highest values of each minute.
CREATE TABLE outbox_samples (
    at bigint, -- start, minutes since 1970 UTC
    outbox text COLLATE "C", -- its name
    ready bigint NOT NULL, -- rows that the relay could take
    oldest bigint NOT NULL, -- age of the oldest of them, µs
    dead bigint NOT NULL, -- dead letters
    PRIMARY KEY (at, outbox)
);

CREATE TABLE views (
    view bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    query text NOT NULL,
    sort text NOT NULL,
    cols text NOT NULL
);

-- Moments that people marked (history.Mark).
CREATE TABLE marks (
    mark bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    text text NOT NULL,
    link text NOT NULL,
    service text NOT NULL,
    version text NOT NULL,
    actor text NOT NULL
);
CREATE INDEX marks_by_time ON marks (at, mark);

-- Who is signed in with a browser (history.Session), and API tokens (history.Token). Secrets are kept as SHA-256 only.
CREATE TABLE sessions (
    hash bytea PRIMARY KEY, -- of what the cookie holds
    identity text NOT NULL, -- JSON, of package auth
    created bigint NOT NULL,
    seen bigint NOT NULL
);
CREATE TABLE tokens (
    token bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash bytea NOT NULL UNIQUE,
    name text NOT NULL,
    identity text NOT NULL, -- JSON: its owner, of package auth; empty for tokens made on the command line
    role text NOT NULL,
    payload boolean NOT NULL, -- whether arguments and results may be seen with it
    created bigint NOT NULL,
    expires bigint NOT NULL,
    used bigint -- NULL if it never was
);

-- Rules by which Umbel alerts (history.AlertRule).
CREATE TABLE alert_rules (
    rule bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    definition bytea NOT NULL, -- JSON, of package alert
    receivers text NOT NULL, -- JSON: names
    muted bigint, -- until when nobody is notified, NULL if not
    muted_by text NOT NULL,
    saved bigint NOT NULL,
    saved_by text NOT NULL
);

-- When they fired (history.AlertFiring).
CREATE TABLE alert_firings (
    firing bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule bigint NOT NULL,
    name text NOT NULL, -- of the rule, as it was then
    subject text COLLATE "C" NOT NULL, -- task name, worker, queue or id; empty if there is one for all
    began bigint NOT NULL,
    ended bigint, -- NULL while it fires
    value double precision NOT NULL,
    evidence bytea NOT NULL, -- JSON, of package alert
    notified boolean NOT NULL, -- whether it was notified that it began
    acked bigint, -- when a user took it up
    acked_by text NOT NULL
);
CREATE UNIQUE INDEX alert_firings_open ON alert_firings (rule, subject) WHERE ended IS NULL;
CREATE INDEX alert_firings_by_rule ON alert_firings (rule, firing);
CREATE INDEX alert_firings_by_end ON alert_firings (ended) WHERE ended IS NOT NULL;

-- What rules are judged by: one record of each minute, never changed.
CREATE TABLE alert_records (
    at bigint PRIMARY KEY, -- end
    record bytea NOT NULL -- of package alert
);
