package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/query"
)

// serveTrace shows a trace until ctx ends.
func (c *serveCmd) serveTrace(ctx context.Context, log *slog.Logger) error {
	o := dashboard.Options{Version: versionString()}
	if err := c.complete(&o, log); err != nil {
		return err
	}
	file, err := os.Open(c.Trace)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	u, err := dashboard.NewTrace(ctx, o, file)
	_ = file.Close()
	if wrong, ok := errors.AsType[*dashboard.TraceError](err); ok {
		return fmt.Errorf("%s %w", c.Trace, wrong)
	}
	if err != nil {
		return opened(err)
	}
	return c.show(ctx, u, log, nil)
}

// trace says what a trace holds, or how its tasks were at an instant. Of one that is cut off it prints what there is, and
// returns an error.
func (c *replayCmd) trace(file string, in io.Reader, s streams) error {
	failed := func(err error) error { return fmt.Errorf("%s %w", file, err) }
	t, err := trace.NewReader(in)
	if err != nil {
		return failed(err)
	}
	h := t.Header()
	at := h.Until
	if c.At != "" {
		if at, err = query.ParseInstant(c.At, h.Until); err != nil {
			return usageError{fmt.Errorf("--at %s: %w", c.At, err)}
		}
	}
	r := replay{cluster: state.New(state.Options{MaxTasks: math.MaxInt32, MaxText: math.MaxInt32 << 10, Rules: rulesOf(c.Rules)})}
	var cut error
	for {
		e, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, trace.ErrCutOff) {
			cut = err
			break
		}
		if err != nil {
			return failed(err)
		}
		if e.At() > at.UnixMicro() { // the rest is read for what is wrong with it
			continue
		}
		if e.Event != nil {
			r.events++
		}
		if err := e.Apply(r.cluster, nil); err != nil {
			return failed(err)
		}
	}
	if end := t.End(); end.Before(at) {
		at = end
	}
	r.cluster.Expire(at.UnixMicro())
	switch {
	case c.JSON:
		err = r.print(s.out)
	case c.At != "":
		_, err = fmt.Fprintf(s.out, "Trace of %s as of %s UTC\n\n", h.Asked(), at.UTC().Format(instantFormat))
		if err == nil {
			_, err = (&tasksCmd{Format: "table"}).print(s.out, r.newest())
		}
	default:
		err = r.summarize(s.out, &h, at, cut != nil)
	}
	if err == nil && cut != nil {
		err = failed(cut)
	}
	return err
}

const instantFormat = "2006-01-02 15:04:05.000"

// newest yields all tasks, newest change first.
func (r *replay) newest() iter.Seq2[*state.Task, error] {
	return func(yield func(*state.Task, error) bool) {
		for q := (state.Query{Limit: maxPage}); ; {
			page := r.cluster.Tasks(q)
			for i := range page.Tasks {
				if !yield(&page.Tasks[i], nil) {
					return
				}
			}
			if q.From = page.Older; q.From == nil {
				return
			}
		}
	}
}

// summarize says what a trace holds, a fact a line.
func (r *replay) summarize(out io.Writer, h *trace.Header, end time.Time, cut bool) error {
	w := bufio.NewWriter(out)
	fact := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "%-14s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	fact("Trace of", "%s", h.Asked())
	fact("Cluster", "%s", h.Cluster)
	fact("Saved", "%s UTC by Umbel %s", h.MadeAt.UTC().Format(time.DateTime), h.Umbel)
	if cut {
		fact("Cut off at", "%s UTC: what was received later is missing", end.UTC().Format(instantFormat))
	} else {
		fact("As of", "%s UTC", end.UTC().Format(instantFormat))
	}
	if !h.First.IsZero() {
		fact("First event", "%s UTC, %v before", h.First.UTC().Format(instantFormat), end.Sub(h.First).Round(time.Millisecond))
	}
	fact("Payloads", "%s", map[bool]string{true: "included", false: "left out"}[h.Payload])
	fact("Events", "%d of %d tasks", r.events, r.cluster.Counts().Tasks)
	counts := r.cluster.Counts()
	for _, s := range slices.Sorted(maps.Keys(counts.ByState)) {
		if n := counts.ByState[s]; n > 0 {
			fact("  "+string(s), "%d", n)
		}
	}
	if counts.Lost > 0 {
		fact("  not ending", "%d", counts.Lost)
	}
	for _, v := range r.cluster.Workers() {
		fact("Worker", "%s, %s, %d tasks", v.Name, v.Status, counts.ByWorker[v.Name])
	}
	if received, started := r.missing(); received+started > 0 {
		fact("Missing", "task-received of %d attempts, task-started of %d", received, started)
	}
	for _, d := range h.Doubts {
		fact("Approximate", "%s", d)
	}
	return w.Flush()
}

// missing counts the attempts of which an end was seen, and not what came before it.
func (r *replay) missing() (received, started int) {
	for t := range r.newest() { //nolint:errcheck // the cluster is in memory
		for _, e := range t.Executions {
			if e.SucceededAt == 0 && e.FailedAt == 0 && e.RetriedAt == 0 {
				continue
			}
			if e.Inferred {
				received++
			}
			if e.StartedAt == 0 {
				started++
			}
		}
	}
	return received, started
}
