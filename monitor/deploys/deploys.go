// Package deploys lists moments to compare charts and failures with: marks that people and CI jobs set, and restarts of
// workers, of which many at about one time are one. It keeps nothing, and says what came first, never what caused what.
package deploys

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Kind says where a mark comes from.
type Kind string

// The kinds.
const (
	Deploy  Kind = "deploy"  // set by people and CI jobs, for deploys and whatever else they want to see
	Restart Kind = "restart" // processes of workers that replaced others
)

// Bounds.
const (
	rollout    = time.Minute      // between restarts that belong together
	maxRollout = 10 * time.Minute // from the first of them to the last
	maxBefore  = 24 * time.Hour   // from a mark to what it precedes
)

// Mark is a moment.
type Mark struct {
	history.Mark // without ID and By if it is a restart

	Kind    Kind
	Workers []string // that restarted, by name
}

// Label is what to call the mark: its text, with the service that it names.
func (m Mark) Label() string {
	if m.Service != "" && !strings.Contains(m.Text, m.Service) {
		return m.Service + " " + m.Text
	}
	return m.Text
}

// Read returns the marks with from ≤ At < to, oldest first; the newest limit if there are more. view calls its argument with
// the cluster.
func Read(ctx context.Context, store history.Marks, view func(f func(c state.View)), from, to time.Time, limit int) ([]Mark, error) {
	stored, err := store.Marks(ctx, from, to, limit)
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	list := make([]Mark, 0, len(stored))
	for _, m := range stored {
		list = append(list, Mark{Mark: m, Kind: Deploy})
	}
	var restarts []state.Restart
	view(func(c state.View) { restarts = c.Restarts(from.Add(-maxRollout).UnixMicro()) })
	for _, m := range Restarts(restarts) {
		if !m.At.Before(from) && m.At.Before(to) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b Mark) int { return a.At.Compare(b.At) })
	return list[max(len(list)-limit, 0):], nil
}

// Restarts joins restarts, oldest first, that follow each other closely.
func Restarts(list []state.Restart) []Mark {
	var marks []Mark
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].At-list[n-1].At <= rollout.Microseconds() && list[n].At-list[0].At <= maxRollout.Microseconds() {
			n++
		}
		marks = append(marks, restart(list[:n]))
		list = list[n:]
	}
	return marks
}

// restart is the mark of restarts that belong together.
func restart(list []state.Restart) Mark {
	m := Mark{Kind: Restart}
	m.At = time.UnixMicro(list[0].At).UTC()
	for _, r := range list {
		m.Workers = append(m.Workers, r.Worker)
	}
	slices.Sort(m.Workers)
	switch m.Workers = slices.Compact(m.Workers); {
	case len(m.Workers) > 1:
		m.Text = fmt.Sprintf("%d workers restarted", len(m.Workers))
	case len(list) > 1:
		m.Text = fmt.Sprintf("%s restarted %d times", m.Workers[0], len(list))
	default:
		m.Text = m.Workers[0] + " restarted"
	}
	return m
}

// Of returns the marks that concern a worker: those that people set, and its own restarts.
func Of(list []Mark, worker string) []Mark {
	return slices.DeleteFunc(slices.Clone(list), func(m Mark) bool { return m.Kind == Restart && !slices.Contains(m.Workers, worker) })
}

// Before returns the newest mark in the day before a moment, and with it, if that is a restart, the newest deploy in that
// day; newest first. The list is sorted as Read returns it.
func Before(list []Mark, at time.Time) []Mark {
	end, _ := slices.BinarySearchFunc(list, at, func(m Mark, at time.Time) int { return cmp.Or(m.At.Compare(at), -1) })
	var found []Mark
	for _, m := range slices.Backward(list[:end]) {
		if at.Sub(m.At) > maxBefore {
			break
		}
		if m.Kind == Deploy || len(found) == 0 {
			found = append(found, m)
		}
		if m.Kind == Deploy {
			break
		}
	}
	return found
}
