package simulate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// A fresh demo shows ten minutes of history: they hold all that the simulation has to offer.
func TestTenMinutesHoldEverything(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 11, Truth: true}, 10*time.Minute)
	s.decode(t)
	truth := s.cluster.Truth()

	anEvent := func(ok func(e event) bool) func() bool {
		return func() bool { return slices.ContainsFunc(s.events, ok) }
	}
	aTask := func(ok func(x simulate.TaskTruth) bool) func() bool {
		return func() bool { return slices.ContainsFunc(truth, ok) }
	}
	aType := func(kind string) func() bool { return anEvent(func(e event) bool { return e.Type == kind }) }
	aState := func(want state.State) func() bool {
		return aTask(func(x simulate.TaskTruth) bool { return x.State == want })
	}
	phenomena := map[string]func() bool{
		"sent":      aType("task-sent"),
		"online":    aType("worker-online"),
		"offline":   aType("worker-offline"),
		"progress":  aType("task-progress"),
		"cancelled": aType("task-cancelled"),
		"success":   aState(state.Success),
		"failure":   aState(state.Failure),
		"revoked":   aState(state.Revoked),
		"rejected":  aState(state.Rejected),
		"expired": anEvent(func(e event) bool {
			return e.Type == "task-revoked" && e.Expired != nil && *e.Expired
		}),
		"expired is null": anEvent(func(e event) bool { return e.Type == "task-revoked" && e.Expired == nil }),
		"terminated": anEvent(func(e event) bool {
			return e.Type == "task-revoked" && *e.Terminated
		}),
		"eta":          anEvent(func(e event) bool { return e.Type == "task-received" && e.Retries == 0 && e.ETA != nil }),
		"unregistered": anEvent(func(e event) bool { return strings.HasPrefix(e.Exception, "NotRegistered(") && e.Traceback == "" }),
		"pool child killed": anEvent(func(e event) bool {
			return strings.HasPrefix(e.Exception, "WorkerLostError(")
		}),
		"unicode":        anEvent(func(e event) bool { return strings.Contains(e.Kwargs, "Zoë") }),
		"truncated args": anEvent(func(e event) bool { return strings.HasSuffix(e.Args, "..., ...],)") }),
		"truncated text": anEvent(func(e event) bool { return strings.HasSuffix(e.Kwargs, "...'}") }),
		"retried elsewhere": aTask(func(x simulate.TaskTruth) bool {
			i := slices.IndexFunc(x.Executions, func(y simulate.ExecutionTruth) bool { return y.State == state.Retry })
			return i >= 0 && i+1 < len(x.Executions) && x.Executions[i+1].Worker != x.Executions[i].Worker
		}),
		"retry is its own parent": anEvent(func(e event) bool { return e.Retries > 0 && e.ParentID != nil && *e.ParentID == e.UUID }),
		"lost for good": aTask(func(x simulate.TaskTruth) bool {
			n := len(x.Executions)
			return n > 0 && x.Executions[n-1].Lost
		}),
		"lost, then redelivered": aTask(func(x simulate.TaskTruth) bool {
			return len(x.Executions) == 2 && x.Executions[0].Lost && x.Executions[1].Attempt == 0 && x.State == state.Success
		}),
		"ran twice": aTask(func(x simulate.TaskTruth) bool {
			return len(x.Executions) > 1 && x.Executions[0].State == state.Success && x.Executions[1].Attempt == 0
		}),
		"workflow": aTask(func(x simulate.TaskTruth) bool { return x.Root != x.ID }),
		"message delivered twice": func() bool {
			return slices.ContainsFunc(s.deliveries, func(d simulate.Delivery) bool { return d.Redelivered })
		},
		"empty array": func() bool {
			return slices.ContainsFunc(s.deliveries, func(d simulate.Delivery) bool { return string(d.Body) == "[]" })
		},
		"batch of four and more": func() bool {
			for i := range s.events[3:] {
				if s.events[i].message == s.events[i+3].message {
					return true
				}
			}
			return false
		},
		"heartbeat before older task event": s.heartbeatOvertakes,
		"result after goodbye":              s.resultAfterGoodbye,
		"solo worker falls silent":          s.soloFallsSilent,
		"new process with a clock near 0":   s.clockStartsAgain,
	}
	for name, seen := range phenomena {
		if !seen() {
			t.Errorf("ten minutes without %s", name)
		}
	}
}

// heartbeatOvertakes reports whether a heartbeat arrived before an older task event of its process.
func (s *recording) heartbeatOvertakes() bool {
	beat := make(map[string]int64)
	for _, e := range s.events {
		if e.Type == "worker-heartbeat" {
			beat[e.process()] = e.Clock
		} else if e.Type == "task-started" && e.Clock < beat[e.process()] && !s.deliveries[e.message].Redelivered {
			return true
		}
	}
	return false
}

// resultAfterGoodbye reports whether a process had results after worker-offline.
func (s *recording) resultAfterGoodbye() bool {
	gone := make(map[string]bool)
	for _, e := range s.events {
		if e.Type == "worker-offline" {
			gone[e.process()] = true
		} else if e.Type == "task-succeeded" && gone[e.process()] {
			return true
		}
	}
	return false
}

// soloFallsSilent reports whether the solo worker was silent for 5 s and then sent all events of a
// task in one array.
func (s *recording) soloFallsSilent() bool {
	const name = "reports@web-1"
	var last time.Time
	for i, e := range s.events {
		if e.Hostname != name || e.Type == "task-progress" {
			continue
		}
		at := s.deliveries[e.message].At
		if !last.IsZero() && at.Sub(last) > 5*time.Second && e.Type == "task-received" {
			if n := s.events[i+2]; n.message == e.message && n.UUID == e.UUID && n.Type == "task-succeeded" {
				return true
			}
		}
		last = at
	}
	return false
}

// clockStartsAgain reports whether a node name came back as another process with a small clock.
func (s *recording) clockStartsAgain() bool {
	beat := make(map[string]event)
	for _, e := range s.events {
		if !strings.HasPrefix(e.Type, "worker-") {
			continue
		}
		if old, known := beat[e.Hostname]; known && old.PID != e.PID && old.Clock > 1_000 && e.Clock < 10 {
			return true
		}
		beat[e.Hostname] = e
	}
	return false
}

func TestGossipMovesSomeClocks(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 2}, 30*time.Second)
	s.decode(t)
	clock := make(map[string]int64)
	for _, e := range s.events {
		if e.Type == "worker-heartbeat" {
			clock[e.Hostname] = e.Clock
		}
	}
	if a, b := clock["celery@web-1"], clock["celery@jobs-2"]; max(a, b)-min(a, b) > 200 {
		t.Errorf("clocks of two workers that gossip = %d and %d, want them close", a, b)
	}
	if a, b := clock["celery@web-1"], clock["media@jobs-1"]; max(a, b)-min(a, b) < 200 {
		t.Errorf("clocks of two workers that do not gossip = %d and %d, want them apart", a, b)
	}
}
