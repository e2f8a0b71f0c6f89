package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/api"
)

// taskWriter writes a list of tasks.
type taskWriter interface {
	write(t *state.Task) error
	flush() error
}

func newWriter(format string, out io.Writer) taskWriter {
	switch format {
	case "json":
		return exportWriter{api.NewEncoder(out, api.FormatJSONL, nil)}
	case "csv":
		return exportWriter{api.NewEncoder(out, api.FormatCSV, query.Fields())}
	default:
		return &tableWriter{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	}
}

// exportWriter writes tasks as exports of the API have them.
type exportWriter struct{ *api.Encoder }

func (w exportWriter) write(t *state.Task) error { return w.Task(api.FromTask(*t)) }
func (w exportWriter) flush() error              { return w.Flush() }

// tableWriter writes columns for people, as wide as a number of tasks needs.
type tableWriter struct {
	w *tabwriter.Writer
	n int // tasks so far
}

func (w *tableWriter) write(t *state.Task) error {
	if w.n%maxPage == 0 {
		if err := w.w.Flush(); err != nil {
			return err
		}
	}
	if w.n++; w.n == 1 {
		if _, err := fmt.Fprintln(w.w, "STATE\tUPDATED\tRUN\tNAME\tID\tWORKER\tEXCEPTION"); err != nil {
			return err
		}
	}
	run := ""
	if t.RuntimeSeconds != nil {
		run = fmt.Sprintf("%.3fs", *t.RuntimeSeconds)
	}
	updated := ""
	if t.UpdatedAt != 0 {
		updated = time.UnixMicro(t.UpdatedAt).UTC().Format("2006-01-02 15:04:05Z")
	}
	cells := []string{string(t.State), updated, run, text(t.Name), t.ID, text(t.Worker), text(t.Exception)}
	for i, cell := range cells {
		cells[i] = short(printable(cell))
	}
	_, err := fmt.Fprintln(w.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	return err
}

func (w *tableWriter) flush() error { return w.w.Flush() }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// short cuts a cell to what a line has room for.
func short(s string) string {
	const most = 60
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
