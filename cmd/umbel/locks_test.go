package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// lock is one of the API, as far as the tests look at it.
type lock struct {
	Key     string `json:"key"`
	State   string `json:"state"`
	Version string `json:"version"`
	GoneAt  string `json:"gone_at"`
	Holder  struct {
		TaskID string `json:"task_id"`
		Status string `json:"status"`
	} `json:"holder"`
	Marks []struct {
		Kind string `json:"kind"`
	} `json:"marks"`
}

// words are the state of a lock, the status of its holder, and its marks.
func (l lock) words() string {
	list := []string{l.State, l.Holder.Status}
	for _, m := range l.Marks {
		list = append(list, m.Kind)
	}
	return strings.Join(list, " ")
}

// awaitLock waits for a lock that a task holds to be as words say.
func (d *dashboard) awaitLock(t *testing.T, task, words string) lock {
	t.Helper()
	var found lock
	eventually(t, timeout, func() error {
		page, ok := api[list[lock]](t, d, "locks")
		i := slices.IndexFunc(page.Items, func(l lock) bool { return l.Holder.TaskID == task && l.words() == words })
		if !ok || i < 0 {
			return fmt.Errorf("locks = %+v, want that of %s to be %s", page.Items, task, words)
		}
		found = page.Items[i]
		return nil
	})
	return found
}

// A worker that is killed leaves the lock of its task. People release it, and the call runs.
func TestEndToEndLockOfAKilledWorkerIsReleased(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	g := newGate(t)
	once := clientCall{Call: "hold_once", Kwargs: map[string]any{"path": string(g)}}
	first := c.work(t, "killed@test", "celery", "-P", "prefork", "-c", "1", "-E")
	d := start(t, c.env, "serve")
	d.connected(t)
	id := c.do(t, once)[0]
	d.awaitLock(t, id, "processing running")
	first.end(t, syscall.SIGKILL)
	held := d.awaitLock(t, id, "processing lost stuck")

	c.work(t, "next@test", "celery", "-P", "prefork", "-c", "1", "-E")
	skipped := c.do(t, once)[0]
	eventually(t, timeout, func() error {
		got, _ := api[struct {
			Result *string `json:"result"`
		}](t, d, "tasks/"+skipped)
		if got.Result == nil || !strings.Contains(*got.Result, "concurrent_execution") {
			return fmt.Errorf("result of the second call = %v, want it to be turned away", got.Result)
		}
		return nil
	})
	body, err := json.Marshal(map[string]string{"key": held.Key, "version": held.Version, "confirm": "tasks.hold_once"})
	if err != nil {
		t.Fatal(err)
	}
	r := d.post(t, "release?wait=20s", string(body))
	if got := r.Commands[0]; got.State != "done" || len(got.Answers) != 1 || got.Answers[0].Text != "lock released" {
		t.Errorf("release = %+v, want it done", got)
	}
	third := c.do(t, once)[0]
	d.awaitLock(t, third, "processing running")
	g.open(t)
	d.awaitLock(t, third, "completed ended")
	if status, _ := d.fetch(t, "locks"); status != http.StatusOK {
		t.Errorf("page = %d, want 200", status)
	}
}

// A lock whose TTL is shorter than its task lets the call run twice.
func TestEndToEndExpiredLockIsNoticed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	g := newGate(t)
	once := clientCall{Call: "hold_once", Kwargs: map[string]any{"path": string(g), "ttl": 8}}
	c.work(t, "two@test", "celery", "-P", "threads", "-c", "2", "-E")
	d := start(t, c.env, "serve")
	d.connected(t)
	first := c.do(t, once)[0]
	d.awaitLock(t, first, "processing running")
	d.awaitLock(t, first, "processing running expired")
	c.do(t, once)
	if l := d.awaitLock(t, first, "processing running second_run"); l.GoneAt == "" {
		t.Errorf("lock = %+v, want it gone", l)
	}
	g.open(t)
}
