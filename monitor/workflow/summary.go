package workflow

import (
	"cmp"

	"github.com/umbelhq/umbel/state"
)

// Status is the state of a whole workflow.
type Status string

// The states of workflows, by what its tasks are in.
const (
	Running   Status = "running"   // some task is expected to end
	Failed    Status = "failed"    // all are over, and one failed, was revoked or was rejected
	Lost      Status = "lost"      // all are over, none failed, and one is lost
	Succeeded Status = "succeeded" // all are over, and those that were not dismissed succeeded
)

// Statuses returns all statuses, as they are listed.
func Statuses() []Status { return []Status{Running, Failed, Lost, Succeeded} }

// Summary counts the tasks of a workflow.
type Summary struct {
	Tasks  int // those known
	Over   int // of them, no more is expected
	Failed int // failed, revoked or rejected
	Lost   int // not expected to end, although not ended

	StartedAt int64 // when the first was sent or else received, µs since 1970 UTC, 0 if unknown
	EndedAt   int64 // when the last ended, 0 if some have not ended or no end is known
}

// Status is the state of a workflow with so many tasks.
func (s Summary) Status() Status {
	switch {
	case s.Over < s.Tasks:
		return Running
	case s.Failed > 0:
		return Failed
	case s.Lost > 0:
		return Lost
	default:
		return Succeeded
	}
}

// DurationMicros is how long it took, or has taken until now, in µs; false if that is unknown.
func (s Summary) DurationMicros(now int64) (int64, bool) {
	end := cmp.Or(s.EndedAt, now)
	if s.StartedAt == 0 || s.Over == s.Tasks && s.EndedAt == 0 {
		return 0, false
	}
	return end - s.StartedAt, true
}

// Summary counts the tasks that are assembled.
func (w *Workflow) Summary() Summary {
	s := Summary{Tasks: len(w.Tasks)}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		if first := t.FirstAt(); first != 0 && (s.StartedAt == 0 || first < s.StartedAt) {
			s.StartedAt = first
		}
		s.EndedAt = max(s.EndedAt, t.EndedAt())
		switch {
		case t.State.Final():
			s.Over++
			if t.State != state.Success {
				s.Failed++
			}
		case t.Over():
			s.Over++
			if t.Lost {
				s.Lost++
			}
		}
	}
	if s.Over < s.Tasks {
		s.EndedAt = 0
	}
	return s
}
