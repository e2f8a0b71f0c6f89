package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// idempotentTTL is the lock_ttl of the task hold_idempotently.
const idempotentTTL = 6 * time.Second

// outcome waits until a task is in a state, and returns what it returned or raised.
func (d *dashboard) outcome(t *testing.T, id, state string) string {
	t.Helper()
	var got task
	eventually(t, timeout, func() error {
		if got, _ = api[task](t, d, "tasks/"+id); got.State != state {
			return fmt.Errorf("task %s is %q, want %s: %s%s", id, got.State, state, got.Result, got.Exception)
		}
		return nil
	})
	return got.Result + got.Exception
}

// An IdempotentTask of the Python package runs once in every pool, for longer than the TTL of its lock, and the page of
// locks shows it.
func TestEndToEndIdempotentTaskRunsOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	d := start(t, c.env, "serve")
	d.connected(t)
	for _, pool := range []string{"prefork", "threads", "gevent"} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			call := clientCall{
				Call: "hold_idempotently", Kwargs: map[string]any{"path": string(g)}, Options: map[string]any{"queue": pool},
			}
			c.work(t, pool+"@test", pool, "-P", pool, "-c", "2", "-E")
			first := c.do(t, call)[0]
			held := d.awaitLock(t, first, "processing running")
			since := time.Now()
			client := redisClient(t, c.broker)
			eventually(t, timeout, func() error {
				left, err := client.PTTL(t.Context(), held.Key).Result()
				if err != nil || left <= 0 {
					t.Fatalf("%v after its TTL of %v began, the lock has %v left, %v", time.Since(since), idempotentTTL, left, err)
				}
				if time.Since(since) < idempotentTTL+time.Second {
					return fmt.Errorf("has been held for %v only", time.Since(since))
				}
				return nil
			})
			if got := d.outcome(t, c.do(t, call)[0], "SUCCESS"); !strings.Contains(got, "concurrent_execution") {
				t.Errorf("called while it ran, it returned %s", got)
			}
			g.open(t)
			if got := d.outcome(t, first, "SUCCESS"); got != "'held'" {
				t.Errorf("the task returned %s, want 'held'", got)
			}
			if got := d.outcome(t, c.do(t, call)[0], "SUCCESS"); !strings.Contains(got, "already_completed") {
				t.Errorf("called after it ran, it returned %s", got)
			}
			d.awaitLock(t, first, "completed ended")
		})
	}
}

// The message of a worker that was killed comes back while its lock still holds. It waits for that and runs, with the
// number of retries that it had.
func TestEndToEndIdempotentTaskOfAKilledWorkerRunsAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, testenv.VirtualHost(t)) // which delivers again at once
	g := newGate(t)
	killed := c.work(t, "killed@test", "celery", "-P", "prefork", "-c", "1", "-E")
	d := start(t, c.env, "serve")
	d.connected(t)
	id := c.do(t, clientCall{Call: "hold_idempotently", Kwargs: map[string]any{"path": string(g)}})[0]
	d.awaitLock(t, id, "processing running")
	killed.end(t, syscall.SIGKILL)
	c.work(t, "next@test", "celery", "-P", "prefork", "-c", "1", "-E")
	eventually(t, timeout, func() error {
		got, _ := api[task](t, d, "tasks/"+id)
		if got.State != "STARTED" || got.Worker != "next@test" {
			return fmt.Errorf("task is %s on %s with executions %+v", got.State, got.Worker, got.Executions)
		}
		return nil
	})
	g.open(t)
	if got := d.outcome(t, id, "SUCCESS"); got != "'held'" {
		t.Errorf("the task returned %s, want 'held'", got)
	}
	got, _ := api[task](t, d, "tasks/"+id)
	if got.Retries != nil && *got.Retries != 0 {
		t.Errorf("the task has been retried %d times, want 0", *got.Retries)
	}
}

// A task whose lock was deleted fails before it takes effect, and the run that has the lock now does not.
func TestEndToEndIdempotentTaskNoticesALostLock(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	g := newGate(t)
	c.work(t, "two@test", "celery", "-P", "threads", "-c", "2", "-E")
	d := start(t, c.env, "serve")
	d.connected(t)
	call := clientCall{Call: "hold_idempotently", Kwargs: map[string]any{"path": string(g)}}
	first := c.do(t, call)[0]
	held := d.awaitLock(t, first, "processing running")
	if err := redisClient(t, c.broker).Del(t.Context(), held.Key).Err(); err != nil {
		t.Fatal(err)
	}
	second := c.do(t, call)[0]
	eventually(t, timeout, func() error {
		got, _ := api[task](t, d, "tasks/"+second)
		if got.State != "STARTED" {
			return fmt.Errorf("the second task is %s", got.State)
		}
		return nil
	})
	since := time.Now()
	eventually(t, timeout, func() error { // until the first has had time to notice
		if time.Since(since) < idempotentTTL {
			return fmt.Errorf("%v have passed", time.Since(since))
		}
		return nil
	})
	g.open(t)
	if got := d.outcome(t, first, "FAILURE"); !strings.Contains(got, "LockLost") {
		t.Errorf("the first task raised %s, want LockLost", got)
	}
	if got := d.outcome(t, second, "SUCCESS"); got != "'held'" {
		t.Errorf("the second task returned %s, want 'held'", got)
	}
}
