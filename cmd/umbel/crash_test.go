package main_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// kills is how often TestEndToEndKilledAgainAndAgain kills Umbel.
var kills = testenv.Trials(90)

// TestEndToEndKilledAgainAndAgain kills Umbel at random moments of a burst, while it starts, restores, reads and
// writes, and compares every task with what really happened to it.
func TestEndToEndKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	simulated, err := simulate.New(simulate.Options{
		Seed: 5, Rate: 30, Start: time.Now().Add(-time.Hour), Length: 2 * time.Minute, Truth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var bodies [][]byte
	for d, ok := simulated.Next(); ok; d, ok = simulated.Next() {
		bodies = append(bodies, d.Body)
	}
	broker := testenv.VirtualHost(t)
	b := newBus(t, broker)
	args := []string{
		"serve", "--broker-url", broker, "--queue", "umbel-crash", "--data-dir", t.TempDir(), "--max-tasks", "1000",
		"--keep-succeeded", "0", "--keep-failed", "0", "--keep-events", "0",
	}
	d := start(t, nil, args...)
	d.connected(t) // the queue is there
	for round := range kills {
		part := bodies[round*len(bodies)/kills : (round+1)*len(bodies)/kills]
		var publishing sync.WaitGroup
		publishing.Go(func() {
			for _, body := range part {
				if err := b.publish(t.Context(), routingKeyOf(body), body); err != nil {
					t.Errorf("publish: %v", err)
					return
				}
			}
		})
		p := d.process
		if round > 0 {
			p = spawn(t, command(nil, umbel, append(args, "--listen", "127.0.0.1:0", "--log-format", "json")...))
		}
		within := 300 * time.Millisecond // while it starts
		if round%3 > 0 {
			p.await(t, "broker connected")
			within = 600 * time.Millisecond // while it reads and writes
		}
		<-time.After(rand.N(within))
		p.end(t, syscall.SIGKILL)
		publishing.Wait()
	}
	d = start(t, nil, args...)
	d.connected(t)
	b.publishAll(t, [][]byte{[]byte(`{"type": "task-received", "uuid": "last", "hostname": "w1", "clock": 1, "timestamp": 1790000000}`)})
	d.until(t, "last", func(task) error { return nil })
	compareWithTruth(t, d, simulated.Truth())
	if status := d.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d, want 0", status)
	}
	d = start(t, nil, args...) // with what it wrote at the end
	eventually(t, timeout, func() error {
		if status, body := d.fetch(t, "readyz"); status != 200 {
			return fmt.Errorf("readyz answered %d %s", status, body)
		}
		return nil
	})
	compareWithTruth(t, d, simulated.Truth())
}

// routingKeyOf returns a routing key for a body. Any will do: Umbel receives all.
func routingKeyOf(body []byte) string {
	if body[0] == '[' {
		return "task.multi"
	}
	return "task.any"
}

// compareWithTruth fails the test unless d shows every task as it really was, once.
func compareWithTruth(tb testing.TB, d *dashboard, truth []simulate.TaskTruth) {
	tb.Helper()
	tasks := make(map[string]task, len(truth))
	for _, got := range d.tasks(tb) {
		if _, twice := tasks[got.ID]; twice {
			tb.Errorf("task %s is listed twice", got.ID)
		}
		tasks[got.ID] = got
	}
	if got, want := len(tasks), len(truth)+1; got != want {
		tb.Errorf("%d tasks are listed, want %d", got, want)
	}
	wrong := 0
	for _, want := range truth {
		got, ok := tasks[want.ID]
		if diff := cmp.Diff(known(want), executed(got)); !ok || diff != "" {
			if wrong++; wrong <= 5 {
				_, events := d.fetch(tb, "api/v1/tasks/"+want.ID+"/events")
				tb.Errorf("task %s (-truth +shown):\n%s\nof events %s", want.ID, diff, events)
			}
		}
	}
	if wrong > 0 {
		tb.Errorf("%d of %d tasks differ from the truth", wrong, len(truth))
	}
}

// run is what happened to a task, in terms that the truth and the API share.
type run struct {
	State, Worker string
	Executions    []execution
}

func known(truth simulate.TaskTruth) run {
	r := run{State: string(truth.State), Worker: truth.Worker}
	for _, x := range truth.Executions {
		r.Executions = append(r.Executions, execution{Attempt: int(x.Attempt), Worker: x.Worker, PID: int(x.PID), State: string(x.State)})
	}
	return r
}

func executed(t task) run {
	r := run{State: t.State, Worker: t.Worker}
	for _, x := range t.Executions {
		x.Name, x.Exception = "", ""
		r.Executions = append(r.Executions, x)
	}
	return r
}
