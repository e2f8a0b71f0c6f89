package main_test

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// task is a task of the API, as far as the tests look at it.
type task struct {
	ID             string      `json:"id"`
	Name           string      `json:"name"`
	State          string      `json:"state"`
	Args           string      `json:"args"`
	Kwargs         string      `json:"kwargs"`
	Result         string      `json:"result"`
	Exception      string      `json:"exception"`
	Traceback      string      `json:"traceback"`
	Worker         string      `json:"worker"`
	Client         string      `json:"client"`
	Queue          string      `json:"queue"`
	Retries        *int        `json:"retries"`
	ETA            *time.Time  `json:"eta"`
	RootID         string      `json:"root_id"`
	ParentID       string      `json:"parent_id"`
	Children       []string    `json:"children"`
	SentAt         *time.Time  `json:"sent_at"`
	ReceivedAt     *time.Time  `json:"received_at"`
	StartedAt      *time.Time  `json:"started_at"`
	SucceededAt    *time.Time  `json:"succeeded_at"`
	UpdatedAt      time.Time   `json:"updated_at"`
	RuntimeSeconds *float64    `json:"runtime_seconds"`
	WaitSeconds    *float64    `json:"wait_seconds"`
	WaitRaw        *float64    `json:"wait_raw_seconds"`
	WaitLow        *float64    `json:"wait_low_seconds"`
	WaitHigh       *float64    `json:"wait_high_seconds"`
	Executions     []execution `json:"executions"`
	Redelivered    bool        `json:"redelivered"`
	Orphaned       bool        `json:"orphaned"`
	Returned       bool        `json:"returned"`
	RevokedReason  string      `json:"revoked_reason"`
	RevokedSignal  int         `json:"revoked_signal"`
	Lost           *conclusion `json:"lost"`
}

type conclusion struct {
	Reason   string `json:"reason"`
	Evidence string `json:"evidence"`
}

type execution struct {
	Attempt   int    `json:"attempt"`
	Worker    string `json:"worker"`
	PID       int    `json:"pid"`
	State     string `json:"state"`
	Name      string `json:"name"`
	Replaced  bool   `json:"replaced"`
	Exception string `json:"exception"`
}

type worker struct {
	Name       string   `json:"name"`
	PID        int      `json:"pid"`
	Status     string   `json:"status"`
	Restarts   int      `json:"restarts"`
	OffsetLow  *float64 `json:"clock_offset_low_seconds"`
	OffsetHigh *float64 `json:"clock_offset_high_seconds"`
}

type list[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
	Total *int    `json:"total"`
}

type overview struct {
	Counts struct {
		Tasks   int            `json:"tasks"`
		Running int            `json:"running"`
		Lost    int            `json:"lost"`
		ByState map[string]int `json:"by_state"`
		Workers map[string]int `json:"workers"`
	} `json:"counts"`
	Health struct {
		Broker struct {
			URL         string     `json:"url"`
			Connected   bool       `json:"connected"`
			LastEventAt *time.Time `json:"last_event_at"`
			LastError   *string    `json:"last_error"`
			NextTryAt   *time.Time `json:"next_try_at"`
			Attempts    int        `json:"attempts"`
			Loss        struct {
				Forgets    bool    `json:"forgets"`
				Gaps       int     `json:"outages"`
				GapSeconds float64 `json:"outage_seconds"`
				Dropped    int     `json:"dropped_messages"`
			} `json:"loss"`
		} `json:"broker"`
		Rejected map[string]int `json:"rejected"`
		Messages int            `json:"messages"`
		Events   int            `json:"events"`
	} `json:"health"`
}

func (d *dashboard) overview(tb testing.TB) overview {
	tb.Helper()
	o, ok := api[overview](tb, d, "overview")
	if !ok {
		tb.Fatal("no overview")
	}
	return o
}

// connected waits until the broker is.
func (d *dashboard) connected(tb testing.TB) {
	tb.Helper()
	eventually(tb, timeout, func() error {
		if b := d.overview(tb).Health.Broker; !b.Connected {
			return fmt.Errorf("broker not connected: %v", b.LastError)
		}
		return nil
	})
}

// folded waits until n events were, and fails if there are more.
func (d *dashboard) folded(tb testing.TB, n int) overview {
	tb.Helper()
	var o overview
	eventually(tb, timeout, func() error {
		if o = d.overview(tb); o.Health.Events < n {
			return fmt.Errorf("%d of %d events folded", o.Health.Events, n)
		}
		return nil
	})
	if o.Health.Events != n {
		tb.Errorf("%d events folded, want %d", o.Health.Events, n)
	}
	return o
}

var errUnknown = errors.New("not known")

// until waits for a task that is as it should be, and returns it. good returns what is not as it should.
func (d *dashboard) until(tb testing.TB, id string, good func(t task) error) task {
	tb.Helper()
	var got task
	eventually(tb, timeout, func() error {
		t, ok := api[task](tb, d, "tasks/"+id)
		if !ok {
			return fmt.Errorf("task %s: %w", id, errUnknown)
		}
		got = t
		return good(t)
	})
	return got
}

// inState waits for a task to be in a state, and returns it.
func (d *dashboard) inState(tb testing.TB, id, state string) task {
	tb.Helper()
	return d.until(tb, id, func(t task) error {
		if t.State != state {
			return fmt.Errorf("task %s is %s, want %s", id, t.State, state)
		}
		return nil
	})
}

// worker waits for a worker that is as it should be.
func (d *dashboard) worker(tb testing.TB, name string, good func(w worker) error) worker {
	tb.Helper()
	var got worker
	eventually(tb, timeout, func() error {
		w, ok := api[worker](tb, d, "workers/"+name)
		if !ok {
			return fmt.Errorf("worker %s: %w", name, errUnknown)
		}
		got = w
		return good(w)
	})
	return got
}

// status is a check for worker.
func status(want string) func(worker) error {
	return func(w worker) error {
		if w.Status != want {
			return fmt.Errorf("worker %s is %s, want %s", w.Name, w.Status, want)
		}
		return nil
	}
}

// tasks walks the whole list, newest first.
func (d *dashboard) tasks(tb testing.TB) []task {
	tb.Helper()
	var all []task
	for path := "tasks?limit=500"; ; {
		page, ok := api[list[task]](tb, d, path)
		if !ok {
			tb.Fatal("no list of tasks")
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		path = "tasks?limit=500&cursor=" + *page.Next
	}
}
