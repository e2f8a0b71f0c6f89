package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// nodes are Umbels that share a history, in a PostgreSQL of their own.
type nodes struct {
	t      *testing.T
	server *testpostgres.Server
	url    string // of the history
	db     *sql.DB
	bus    bus
	nodes  map[string]*dashboard
	bodies [][]byte // of all events that were published

	toBroker, toDatabase map[string]*proxy // of each node
	broker               string
}

func newNodes(t *testing.T, broker string) *nodes {
	t.Helper()
	n := &nodes{
		t: t, broker: broker, bus: newBus(t, broker), server: testpostgres.NewServer(t), nodes: make(map[string]*dashboard),
		toBroker: make(map[string]*proxy), toDatabase: make(map[string]*proxy),
	}
	n.server.Start()
	n.url = n.server.Schema("nodes")
	var err error
	if n.db, err = sql.Open("pgx", n.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.db.Close() })
	return n
}

// start runs a node, with further options.
func (n *nodes) start(name string, options ...string) {
	n.t.Helper()
	if n.toBroker[name] == nil {
		n.toBroker[name], n.toDatabase[name] = newProxy(n.t, n.broker), newProxy(n.t, n.url)
	}
	d := start(n.t, nil, append([]string{
		"serve", "--broker-url", n.toBroker[name].broker, "--history", n.toDatabase[name].broker + "&application_name=" + application(name),
		"--node", name, "--max-tasks", "1000", "--keep-succeeded", "0", "--keep-failed", "0", "--keep-events", "0",
	}, options...)...)
	d.connected(n.t)
	n.nodes[name] = d
}

// application is what the database calls a node.
func application(node string) string { return "node-" + node }

// ask reads the one row of a query, again while PostgreSQL starts.
func (n *nodes) ask(query string, into ...any) {
	n.t.Helper()
	eventually(n.t, timeout, func() error {
		return n.db.QueryRowContext(context.WithoutCancel(n.t.Context()), query).Scan(into...)
	})
}

// now is the time by the clock of the database.
func (n *nodes) now() (at time.Time) {
	n.t.Helper()
	n.ask(`SELECT clock_timestamp()`, &at)
	return at
}

// leader returns the name of the node that holds the lease, or held it last and may take it again.
func (n *nodes) leader() string {
	n.t.Helper()
	var holder string
	n.ask(`SELECT holder FROM lease WHERE shard = 0`, &holder)
	return n.name(holder)
}

// name returns the name of who holds the lease, empty for a process that has ended.
func (n *nodes) name(holder string) string {
	for name, d := range n.nodes {
		if strings.HasPrefix(holder, fmt.Sprintf("process %d on ", d.cmd.Process.Pid)) {
			return name
		}
	}
	return ""
}

// watchTakeOvers has the database note when each lease begins.
func (n *nodes) watchTakeOvers() {
	n.t.Helper()
	testpostgres.Execute(n.t, n.url, `CREATE TABLE takeovers (epoch bigint, holder text, at timestamptz);
		CREATE FUNCTION note_takeover() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO takeovers VALUES (NEW.epoch, NEW.holder, clock_timestamp()); RETURN NULL;
		END $$;
		CREATE TRIGGER noted AFTER UPDATE OF epoch ON lease FOR EACH ROW EXECUTE FUNCTION note_takeover()`)
}

// takenOver waits until another node than before has taken the lease since a time by the clock of the database, and fails the test if
// that took too long. By how much this process was late itself on a busy machine is allowed for, as there are others that may be.
func (n *nodes) takenOver(before string, from time.Time) {
	n.t.Helper()
	if took, late := n.taken(before, from); took > maxTakeOver+4*late {
		n.t.Errorf("taken over after %v, want at most %v", took, maxTakeOver)
	}
}

// taken waits until another node than before has taken the lease, and returns how long that took by the clock of the database, and by
// how much this process was late in looking.
func (n *nodes) taken(before string, from time.Time) (took, late time.Duration) {
	n.t.Helper()
	const usual = 200 * time.Millisecond // for one look
	var holder string
	var at time.Time
	looked := time.Now()
	eventually(n.t, timeout, func() error {
		late, looked = max(late, time.Since(looked)-usual), time.Now()
		err := n.db.QueryRowContext(n.t.Context(), `SELECT holder, at FROM takeovers WHERE at > $1 ORDER BY epoch DESC LIMIT 1`, from).Scan(&holder, &at)
		if err == nil && (n.name(holder) == before || n.name(holder) == "") {
			err = errors.New("it is no other node")
		}
		if err != nil {
			return fmt.Errorf("nobody has taken over: %w", err)
		}
		return nil
	})
	took = at.Sub(from)
	n.t.Logf("%s has taken over after %v", n.name(holder), took)
	return took, late
}

// count returns how many lines say word.
func (p *process) count(word string) int {
	text, _ := p.lines.read()
	return strings.Count(text, word)
}

// compare compares every node with the truth, once each has all.
func (n *nodes) compare(truth []simulate.TaskTruth) {
	n.t.Helper()
	last := []byte(`{"type": "task-received", "uuid": "last", "hostname": "w1", "clock": 1, "timestamp": 1790000000}`)
	n.bodies = append(n.bodies, last)
	n.bus.publishAll(n.t, [][]byte{last})
	for _, d := range n.nodes {
		d.until(n.t, "last", func(task) error { return nil })
	}
	eventually(n.t, timeout, func() error { // until then, tasks that nodes have heard in different orders move in their lists
		var lists [][]string
		for _, d := range n.nodes {
			var ids []string
			for _, task := range d.tasks(n.t) {
				ids = append(ids, task.ID)
			}
			lists = append(lists, ids)
			if len(ids) != len(truth)+1 || !slices.Equal(ids, lists[0]) {
				return fmt.Errorf("lists of %d and %d tasks, which differ, want %d", len(lists[0]), len(ids), len(truth)+1)
			}
		}
		return nil
	})
	for name, d := range n.nodes {
		n.t.Logf("node %s", name)
		compareWithTruth(n.t, d, truth)
	}
	want := counted(n.t, n.bodies)
	eventually(n.t, timeout, func() error {
		got, err := n.cells()
		if err != nil {
			return err
		}
		return compareCounts(want, got)
	})
}

// cell is what events are counted by, but for the minute: clocks are corrected by when events come, so that it differs by how fast this
// machine is.
type cell struct{ Name, Worker, Queue string }

// counts are those of a cell.
type counts struct{ Received, Succeeded, Failed, Retried int64 }

func (c counts) plus(d counts) counts {
	return counts{c.Received + d.Received, c.Succeeded + d.Succeeded, c.Failed + d.Failed, c.Retried + d.Retried}
}

// compareCounts says which counts differ, the first of them by name, and what all differ by.
func compareCounts(want, got map[cell]counts) error {
	var differ []string
	var missing counts
	both := maps.Clone(want)
	maps.Copy(both, got)
	for c := range both {
		w, g := want[c], got[c]
		if w == g {
			continue
		}
		differ = append(differ, fmt.Sprintf("%+v: want %+v, got %+v", c, w, g))
		missing.Received += w.Received - g.Received
		missing.Succeeded += w.Succeeded - g.Succeeded
		missing.Failed += w.Failed - g.Failed
		missing.Retried += w.Retried - g.Retried
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("%d of %d cells differ, by %+v in all:\n%s", len(differ), len(want), missing, strings.Join(differ[:min(len(differ), 20)], "\n"))
}

// cells returns the counts of all cells that have any.
func (n *nodes) cells() (map[cell]counts, error) {
	rows, err := n.db.QueryContext(n.t.Context(), `SELECT name, worker, queue, received, succeeded, failed, retried FROM rollups WHERE span = 1`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err reports it
	all := make(map[cell]counts)
	for rows.Next() {
		var c cell
		var of counts
		if err := rows.Scan(&c.Name, &c.Worker, &c.Queue, &of.Received, &of.Succeeded, &of.Failed, &of.Retried); err != nil {
			return nil, err
		}
		if of != (counts{}) {
			all[c] = all[c].plus(of)
		}
	}
	return all, rows.Err()
}

// counted returns the counts of a monitor that has folded all events, once each.
func counted(t *testing.T, bodies [][]byte) map[cell]counts {
	t.Helper()
	c, decoder := state.New(state.Options{MaxTasks: 1_000_000}), celery.Decoder{}
	var r rollup.Recorder
	for _, body := range bodies {
		decoder.Decode(body, time.Now().UnixMicro(), func(e *state.Event) { r.Add(e, c.Apply(e)) })
	}
	all := make(map[cell]counts)
	for _, of := range r.Take() {
		if got := (counts{of.Received, of.Succeeded, of.Failed, of.Retried}); got != (counts{}) {
			c := cell{of.Name, of.Worker, of.Queue}
			all[c] = all[c].plus(got)
		}
	}
	return all
}
