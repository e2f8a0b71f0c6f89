package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// judge dismisses or reinstates a task on the pages of d.
func (d *dashboard) judge(t *testing.T, id, act string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(d.url+"act/dismiss", url.Values{"id": {id}, "action": {act}})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s answered %s", act, res.Status)
	}
}

// dismissed waits until all nodes show that a task is dismissed, or that it is not.
func (n *nodes) dismissed(id string, want bool) {
	n.t.Helper()
	for name, d := range n.nodes {
		eventually(n.t, timeout, func() error {
			type task struct {
				Dismissed *struct{ By string } `json:"dismissed"`
			}
			if got, ok := api[task](n.t, d, "tasks/"+id); !ok || (got.Dismissed != nil) != want {
				return fmt.Errorf("node %s: task is %+v, want dismissed: %t", name, got, want)
			}
			return nil
		})
	}
}

// TestAnyNodeDismisses dismisses a task on a node that follows, reinstates it there, and dismisses it again while nobody leads.
func TestAnyNodeDismisses(t *testing.T) {
	t.Parallel()
	n := newNodes(t, testenv.VirtualHost(t))
	for _, name := range []string{"a", "b"} {
		n.start(name)
	}
	n.watchTakeOvers()
	n.bus.publishAll(t, [][]byte{[]byte(`{"type": "task-received", "uuid": "x", "name": "shop.pay", "hostname": "w1", "clock": 1, "timestamp": 1790000000}`)})
	leader, follower := n.leader(), "b"
	if leader == "b" {
		follower = "a"
	}
	for _, d := range n.nodes {
		d.until(t, "x", func(task) error { return nil })
	}
	n.nodes[follower].judge(t, "x", "dismiss")
	n.dismissed("x", true)
	n.nodes[follower].judge(t, "x", "reinstate")
	n.dismissed("x", false)

	from := n.now()
	n.nodes[leader].end(t, syscall.SIGKILL)
	n.nodes[follower].judge(t, "x", "dismiss")
	n.takenOver(leader, from)
	n.start(leader)
	n.dismissed("x", true)
	n.asked(0)
}

// asked waits until so many requests are left.
func (n *nodes) asked(want int) {
	n.t.Helper()
	eventually(n.t, timeout, func() error {
		var left int
		err := n.db.QueryRowContext(n.t.Context(), `SELECT count(*) FROM requests`).Scan(&left)
		if err == nil && left != want {
			err = fmt.Errorf("%d requests are left, want %d", left, want)
		}
		return err
	})
}

// TestLeaderLearnsWhatItHasNotHeard cuts the leader from Redis, which keeps nothing, for less time than it takes to lose the lease. What the
// other node has heard meanwhile must get into the history, once.
func TestLeaderLearnsWhatItHasNotHeard(t *testing.T) {
	t.Parallel()
	n := newNodes(t, ownRedis(t))
	for _, name := range []string{"a", "b"} {
		n.start(name)
	}
	leader, at := n.leader(), time.Now().Add(-time.Hour).Unix()
	event := func(id string) []byte {
		return fmt.Appendf(nil, `{"type": "task-received", "uuid": %q, "name": "shop.pay", "hostname": "w1", "clock": 1, "timestamp": %d}`, id, at)
	}
	n.bodies = [][]byte{event("before"), event("meanwhile"), event("after")}
	n.bus.publishAll(t, n.bodies[:1])
	n.toBroker[leader].cut()
	n.bus.publishAll(t, n.bodies[1:2])
	n.toBroker[leader].restore(t)
	n.nodes[leader].connected(t)
	n.bus.publishAll(t, n.bodies[2:])
	for _, d := range n.nodes {
		for _, id := range []string{"before", "meanwhile", "after"} {
			d.until(t, id, func(task) error { return nil })
		}
	}
	n.asked(0)
	eventually(t, timeout, func() error {
		got, err := n.cells()
		if err == nil && (len(got) != 1 || got[cell{"shop.pay", "w1", ""}].Received != 3) {
			err = fmt.Errorf("counts %+v, want three", got)
		}
		return err
	})
}

// TestRemovedTasksAreNotWaitedFor stops a node that follows, and removes a task meanwhile of which that then hears.
func TestRemovedTasksAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	n := newNodes(t, testenv.VirtualHost(t))
	n.start("a")
	n.start("b")
	if n.leader() != "a" {
		t.Fatal("node b leads, which started later")
	}
	b := n.nodes["b"]
	b.signal(syscall.SIGSTOP)
	n.bus.publishAll(t, [][]byte{
		[]byte(`{"type": "task-succeeded", "uuid": "x", "hostname": "w1", "clock": 1, "timestamp": 1790000000, "runtime": 1}`),
		[]byte(`{"type": "task-received", "uuid": "y", "hostname": "w1", "clock": 1, "timestamp": 1790000000}`),
	})
	n.nodes["a"].until(t, "x", func(task) error { return nil })
	n.stored("x", 1)
	// As retention does: a test cannot wait for it.
	for _, statement := range []string{
		`DELETE FROM tasks WHERE id = 'x'`, `INSERT INTO removals (at, ids) VALUES (clock_timestamp(), '{x}')`,
	} {
		if _, err := n.db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	b.signal(syscall.SIGCONT)
	b.until(t, "y", func(task) error { return nil })
	eventually(t, timeout, func() error {
		if _, ok := api[task](t, b, "tasks/x"); ok {
			return errors.New("the task is there")
		}
		var lag int64
		err := n.db.QueryRowContext(t.Context(), `SELECT lag FROM nodes WHERE name = 'b' AND seen > clock_timestamp() - interval '2 s'`).Scan(&lag)
		if err == nil && lag > 0 {
			err = fmt.Errorf("an event has waited for %d µs", lag)
		}
		return err
	})
	n.asked(0)
	n.stored("x", 0)
}

// stored waits until the history has so many tasks with an id.
func (n *nodes) stored(id string, want int) {
	n.t.Helper()
	eventually(n.t, timeout, func() error {
		var got int
		err := n.db.QueryRowContext(n.t.Context(), `SELECT count(*) FROM tasks WHERE id = $1`, id).Scan(&got)
		if err == nil && got != want {
			err = fmt.Errorf("%d tasks are stored, want %d", got, want)
		}
		return err
	})
}
