-- Texts sort and compare by their bytes, as in Go. See text.go for how those are stored that PostgreSQL refuses.
CREATE TABLE meta (
    key text COLLATE "C" PRIMARY KEY,
    value bigint NOT NULL
);

-- Who writes. A transaction that writes shares a lock on the row, which one that takes the lease waits for.
CREATE TABLE lease (
    cluster text COLLATE "C",
    shard integer,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (cluster, shard, epoch)
);
CREATE UNIQUE INDEX lease_of_shard ON lease (cluster, shard);

CREATE TABLE journal (
    entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body bytea NOT NULL
);
ALTER TABLE journal ALTER body SET STORAGE EXTERNAL;

CREATE TABLE workers (
    name text COLLATE "C" PRIMARY KEY,
    body text NOT NULL
);

CREATE TABLE snapshots (
    at bigint PRIMARY KEY,
    clock bigint NOT NULL,
    body bytea
);
CREATE INDEX snapshots_with_body ON snapshots (at) WHERE body IS NOT NULL;

-- Active tasks, which are unfinished and not lost, are in week 0, others in the week of their last receipt since 1970. An id is
-- in one row only: who writes looks first.
CREATE SEQUENCE task_numbers;
CREATE TABLE tasks (
    week integer NOT NULL,
    task bigint NOT NULL, -- in the order in which tasks were first saved
    id text COLLATE "C" NOT NULL,
    clock bigint NOT NULL,
    micros bigint NOT NULL,
    origin text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    final smallint NOT NULL, -- 0 active or lost, 1 succeeded, 2 failed, revoked or rejected
    name text COLLATE "C",
    worker text COLLATE "C",
    queue text COLLATE "C",
    client text COLLATE "C",
    exchange text COLLATE "C",
    routing_key text COLLATE "C",
    root text COLLATE "C", -- NULL if it is the task itself
    parent text COLLATE "C",
    sent bigint, -- times and durations are in µs
    received bigint,
    started bigint,
    finished bigint,
    updated bigint NOT NULL,
    eta bigint,
    expires bigint,
    wait bigint,
    run bigint,
    retries bigint,
    flags integer NOT NULL,
    lost bigint, -- when the task was marked as lost or dismissed
    failure bigint, -- of failures
    last_receipt bigint NOT NULL,
    first_receipt bigint,
    call bytea NOT NULL, -- empty if the arguments are not known as a whole
    dup integer NOT NULL,
    former text[], -- names before the task was replaced
    text text COLLATE "C" NOT NULL, -- to search in, in lower case
    body bytea NOT NULL -- the events
) PARTITION BY RANGE (week);

CREATE INDEX tasks_by_id ON tasks (id);
CREATE INDEX tasks_odd_ids ON tasks (id) WHERE lower(id) <> id AND upper(id) <> id OR octet_length(id) <> char_length(id);
CREATE INDEX tasks_by_number ON tasks (task);
CREATE INDEX tasks_by_clock ON tasks (clock, micros, origin, id);
CREATE INDEX tasks_by_state ON tasks (state, clock);
CREATE INDEX tasks_by_name ON tasks (name, clock);
CREATE INDEX tasks_by_worker ON tasks (worker, clock);
CREATE INDEX tasks_by_queue ON tasks (queue, clock);
CREATE INDEX tasks_by_receipt ON tasks (last_receipt);
CREATE INDEX tasks_by_finished ON tasks (finished, clock);
CREATE INDEX tasks_by_started ON tasks (started, clock);
CREATE INDEX tasks_by_run ON tasks (run, clock) WHERE run IS NOT NULL;
CREATE INDEX tasks_by_retries ON tasks (retries, clock) WHERE retries > 0;
CREATE INDEX tasks_by_root ON tasks (root, clock) WHERE root IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent IS NOT NULL;
CREATE INDEX tasks_by_call ON tasks (call, task) WHERE call <> '';
CREATE INDEX tasks_ungrouped ON tasks (name) WHERE call = '';
CREATE INDEX tasks_by_dup ON tasks (dup, clock) WHERE dup <> 0;
CREATE INDEX tasks_by_flags ON tasks (flags, clock) WHERE flags <> 0;
CREATE INDEX tasks_by_failure ON tasks (failure, finished) WHERE failure IS NOT NULL;
CREATE INDEX tasks_lost ON tasks (lost) WHERE lost IS NOT NULL;
CREATE INDEX tasks_former ON tasks USING gin (former) WHERE former IS NOT NULL;
CREATE INDEX tasks_divided ON tasks USING gist (int8range(first_receipt, last_receipt)) WHERE first_receipt < last_receipt;

CREATE TABLE tasks_active PARTITION OF tasks FOR VALUES FROM (0) TO (1)
    WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE TABLE failures (
    failure bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    type text NOT NULL,
    message text NOT NULL,
    place text NOT NULL,
    resolved bigint,
    note text NOT NULL DEFAULT '',
    note_by text NOT NULL DEFAULT '',
    note_at bigint,
    assignee text COLLATE "C" NOT NULL DEFAULT '',
    assigned_at bigint
);

CREATE TABLE workflows (
    workflow bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    root text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C",
    tasks bigint NOT NULL,
    ended bigint NOT NULL,
    failed bigint NOT NULL,
    lost bigint NOT NULL,
    first bigint,
    last bigint
);
CREATE INDEX workflows_by_name ON workflows (name, workflow);
CREATE INDEX workflows_running ON workflows (workflow) WHERE ended < tasks;
CREATE INDEX workflows_failed ON workflows (workflow) WHERE failed > 0 AND ended = tasks;
CREATE INDEX workflows_lost ON workflows (workflow) WHERE lost > 0 AND failed = 0 AND ended = tasks;

-- Groups of tasks with one call, of two tasks or more, by its call, and single tasks that were redelivered or sent twice, by number.
CREATE TABLE duplicates (
    key bytea PRIMARY KEY,
    name text COLLATE "C" NOT NULL, -- empty if unknown
    n bigint NOT NULL,
    newest bigint NOT NULL, -- tasks.task
    marks integer NOT NULL
);
CREATE INDEX duplicates_by_newest ON duplicates (newest);
CREATE INDEX duplicates_by_n ON duplicates (n, newest);
CREATE INDEX duplicates_by_name ON duplicates (name, newest);

CREATE TABLE duplicate_rules (
    name text COLLATE "C" PRIMARY KEY,
    exclude text NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL
);

-- What a new rule is yet to be applied to.
CREATE TABLE duplicate_steps (
    name text COLLATE "C" PRIMARY KEY,
    done bigint NOT NULL,
    last bigint NOT NULL
);

CREATE TABLE rollups (
    span integer, -- minutes
    at bigint,
    name text COLLATE "C",
    worker text COLLATE "C",
    queue text COLLATE "C",
    received bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    retried bigint NOT NULL,
    wait bytea,
    run bytea,
    PRIMARY KEY (span, at, name, worker, queue)
);

-- How far events were thinned, of each class of tasks.
CREATE TABLE thinned (
    final smallint PRIMARY KEY,
    ended bigint NOT NULL,
    task bigint NOT NULL
);
