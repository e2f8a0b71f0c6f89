package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/api"
)

// replayCmd folds recorded events, or those of a trace.
type replayCmd struct {
	At    string `placeholder:"TIME" help:"List the tasks of a trace as they were at this time, such as 2026-09-21T14:03:22.120Z."`
	JSON  bool   `name:"json" help:"Print the state at the end of a trace, or at --at, as JSON, as for recorded events."`
	Rules string `enum:"causal,celery" default:"causal" help:"causal: Umbel's rules. celery: those of celery.events.state."`
}

// Run prints {"tasks": […], "workers": […], "stats": {…}} of events, and of a trace what it holds.
func (c *replayCmd) Run(_ context.Context, s streams, _ *slog.Logger) error {
	if len(s.args) == 0 {
		return usageError{errors.New("replay needs a file of events, or - for standard input")}
	}
	file := s.args[0]
	in, err := open(file, s.in)
	if err != nil {
		return usageError{err}
	}
	defer func() { _ = in.Close() }()
	buffered := bufio.NewReaderSize(in, 1<<20)
	if head, _ := buffered.Peek(2); trace.IsTrace(head) {
		return c.trace(file, buffered, s)
	}
	if c.At != "" || c.JSON {
		return usageError{fmt.Errorf("--at and --json are for traces, and %s is none", file)}
	}
	r := replay{cluster: state.New(state.Options{MaxTasks: math.MaxInt32, MaxText: math.MaxInt32 << 10, Rules: rulesOf(c.Rules)})}
	if err := r.read(buffered, s.err); err != nil {
		return usageError{fmt.Errorf("read %s: %w", file, err)}
	}
	return r.print(s.out)
}

func rulesOf(name string) state.Rules {
	if name == "celery" {
		return state.Celery
	}
	return state.Causal
}

func open(file string, stdin io.Reader) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, fmt.Errorf("replay: %s is a directory, not a file of events", file)
	}
	return f, nil
}

// replay is a fold in progress.
type replay struct {
	cluster          *state.Cluster
	decoder          celery.Decoder
	events, rejected int
}

// read folds every line. Events count as received when they say they happened, so that the same file has
// the same outcome on any day.
func (r *replay) read(lines *bufio.Reader, stderr io.Writer) error {
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lost, cause := r.decoder.Decode(line, 0, func(e *state.Event) {
				r.events++
				e.ReceivedMicros = e.Micros
				r.cluster.Apply(e)
			})
			if lost > 0 {
				r.rejected += lost
				_, _ = fmt.Fprintf(stderr, "line %d: %d not usable (%s)\n", n, lost, cause)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// print writes the state, oldest stamp first, a page at a time.
func (r *replay) print(out io.Writer) error {
	w := bufio.NewWriterSize(out, 1<<20)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	put := func(sep string, v any) error {
		if _, err := w.WriteString(sep); err != nil {
			return err
		}
		return enc.Encode(v)
	}
	sep := `{"tasks": [`
	q := state.Query{Newer: true, Limit: 500}
	count := 0
	for {
		page := r.cluster.Tasks(q)
		for _, t := range slices.Backward(page.Tasks) {
			if err := put(sep, api.FromTask(t)); err != nil {
				return err
			}
			sep = ","
			count++
		}
		if page.Newer == nil {
			break
		}
		q.From = page.Newer
	}
	if count == 0 {
		_, _ = w.WriteString(sep)
	}
	workers := make([]api.Worker, 0)
	for _, v := range r.cluster.Workers() {
		workers = append(workers, api.FromWorker(v))
	}
	if err := put(`], "workers": `, workers); err != nil {
		return err
	}
	stats := map[string]int{"events": r.events, "tasks": count, "rejected": r.rejected}
	if err := put(`, "stats": `, stats); err != nil {
		return err
	}
	_, _ = w.WriteString("}\n")
	return w.Flush()
}
