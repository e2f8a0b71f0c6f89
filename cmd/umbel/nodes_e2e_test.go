package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// TestNodesTakeOver has three Umbels share a history, and while events come kills the leader, stops it for longer than its lease,
// cuts it from the database, and has it leave. Then every task and every count must be as in truth, on each node.
func TestNodesTakeOver(t *testing.T) {
	t.Parallel()
	simulated, err := simulate.New(simulate.Options{
		Seed: 5, Rate: 30, Start: time.Now().Add(-time.Hour), Length: 2 * time.Minute, Truth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := newNodes(t)
	for d, ok := simulated.Next(); ok; d, ok = simulated.Next() {
		n.bodies = append(n.bodies, d.Body)
	}
	for _, name := range []string{"a", "b", "c"} {
		n.start(name)
	}
	faults := []func(leader string){n.kill, n.pause, n.cut, n.kill, n.leave}
	for i, fault := range faults {
		part := n.bodies[i*len(n.bodies)/len(faults) : (i+1)*len(n.bodies)/len(faults)]
		var publishing sync.WaitGroup
		publishing.Go(func() {
			for _, body := range part {
				if err := n.bus.publish(t.Context(), routingKeyOf(body), body); err != nil {
					t.Errorf("publish: %v", err)
					return
				}
			}
		})
		<-time.After(300 * time.Millisecond)
		fault(n.leader())
		publishing.Wait()
	}
	n.compare(simulated.Truth())
}

// kill kills the leader, and starts it again once another one leads.
func (n *nodes) kill(leader string) {
	n.nodes[leader].end(n.t, syscall.SIGKILL)
	n.takenOver(leader)
	n.start(leader)
}

// leave stops the leader in order.
func (n *nodes) leave(leader string) {
	if status := n.nodes[leader].end(n.t, syscall.SIGTERM); status != 0 {
		n.t.Errorf("stopped with status %d, want 0", status)
	}
	n.takenOver(leader)
	n.start(leader)
}

// pause stops the leader until another one leads, and for 8 s. It must not write when it goes on.
func (n *nodes) pause(leader string) {
	rest := time.After(8 * time.Second)
	n.nodes[leader].signal(syscall.SIGSTOP)
	n.takenOver(leader)
	<-rest
	n.nodes[leader].signal(syscall.SIGCONT)
	n.nodes[leader].await(n.t, "another node leads, or may")
}

// cut breaks the connections of the leader to the database, which it opens again.
func (n *nodes) cut(leader string) {
	testpostgres.Execute(n.t, n.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '"+n.application(leader)+"'")
}

// takenOver waits until another node than before leads.
func (n *nodes) takenOver(before string) {
	n.t.Helper()
	begun := time.Now()
	eventually(n.t, timeout, func() error {
		if n.leader() == before {
			return errors.New("nobody has taken over")
		}
		return nil
	})
	n.t.Logf("%s took over from %s after %v", n.leader(), before, time.Since(begun))
}

// nodes are Umbels that share a history.
type nodes struct {
	t      *testing.T
	broker string
	url    string // of the history
	db     *sql.DB
	bus    bus
	nodes  map[string]*dashboard
	bodies [][]byte // of all events that were published
}

func newNodes(t *testing.T) *nodes {
	t.Helper()
	n := &nodes{t: t, broker: testenv.VirtualHost(t), url: testpostgres.Schema(t), nodes: make(map[string]*dashboard)}
	n.bus = newBus(t, n.broker)
	var err error
	if n.db, err = sql.Open("pgx", n.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.db.Close() })
	return n
}

func (n *nodes) start(name string) {
	n.t.Helper()
	d := start(n.t, nil, "serve", "--broker-url", n.broker, "--history", n.url+"&application_name="+n.application(name), "--node", name, "--max-tasks", "1000",
		"--keep-succeeded", "0", "--keep-failed", "0", "--keep-events", "0")
	d.connected(n.t)
	n.nodes[name] = d
}

// application is what the database calls a node.
func (n *nodes) application(name string) string { return path.Base(n.broker) + "-" + name }

// leader returns the name of the node that holds the lease.
func (n *nodes) leader() string {
	n.t.Helper()
	var holder string
	err := n.db.QueryRowContext(context.WithoutCancel(n.t.Context()), `SELECT holder FROM lease WHERE shard = 0`).Scan(&holder)
	if err != nil {
		n.t.Fatal(err)
	}
	for name, d := range n.nodes {
		if strings.HasPrefix(holder, fmt.Sprintf("process %d on ", d.cmd.Process.Pid)) {
			return name
		}
	}
	n.t.Fatalf("%q is no node", holder)
	return ""
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
		compareWithTruth(n.t, d, truth)
		if n.t.Failed() {
			n.t.Fatalf("on node %s", name)
		}
	}
	want := counted(n.t, n.bodies)
	eventually(n.t, timeout, func() error {
		var got history.Rollup
		err := n.db.QueryRowContext(n.t.Context(), `SELECT coalesce(sum(received), 0), coalesce(sum(succeeded), 0), coalesce(sum(failed), 0),
			coalesce(sum(retried), 0) FROM rollups WHERE span = 1`).Scan(&got.Received, &got.Succeeded, &got.Failed, &got.Retried)
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			err = errors.New("counts (-want +got):\n" + diff)
		}
		return err
	})
}

// counted returns the counts of a monitor that has folded all events, once each.
func counted(t *testing.T, bodies [][]byte) (sum history.Rollup) {
	t.Helper()
	c, decoder := state.New(state.Options{MaxTasks: 1_000_000}), celery.Decoder{}
	var r rollup.Recorder
	for _, body := range bodies {
		decoder.Decode(body, time.Now().UnixMicro(), func(e *state.Event) { r.Add(e, c.Apply(e)) })
	}
	for _, cell := range r.Take() {
		sum.Received, sum.Succeeded = sum.Received+cell.Received, sum.Succeeded+cell.Succeeded
		sum.Failed, sum.Retried = sum.Failed+cell.Failed, sum.Retried+cell.Retried
	}
	return sum
}
