package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/umbelhq/umbel/state"
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
		w := bufio.NewWriter(out)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return &jsonWriter{w, e}
	case "csv":
		return &csvWriter{w: csv.NewWriter(out), columns: csvColumns()}
	default:
		return &tableWriter{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	}
}

// jsonWriter writes a task of the API a line.
type jsonWriter struct {
	w *bufio.Writer
	e *json.Encoder
}

func (w *jsonWriter) write(t *state.Task) error { return w.e.Encode(api.FromTask(*t)) }
func (w *jsonWriter) flush() error              { return w.w.Flush() }

// csvWriter writes the fields of the API that are no lists, after a line with their names.
type csvWriter struct {
	w       *csv.Writer
	columns []string
	begun   bool
}

func csvColumns() []string {
	var names []string
	for f := range reflect.TypeFor[api.Task]().Fields() {
		if f.Type.Kind() != reflect.Slice {
			names = append(names, f.Tag.Get("json"))
		}
	}
	return names
}

func (w *csvWriter) write(t *state.Task) error {
	if err := w.begin(); err != nil {
		return err
	}
	b, err := json.Marshal(api.FromTask(*t))
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	row := make([]string, len(w.columns))
	for i, name := range w.columns {
		switch raw := string(fields[name]); {
		case raw == "null":
		case strings.HasPrefix(raw, `"`):
			if err := json.Unmarshal(fields[name], &row[i]); err != nil {
				return err
			}
		default:
			row[i] = raw
		}
	}
	return w.w.Write(row)
}

func (w *csvWriter) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.w.Write(w.columns)
}

func (w *csvWriter) flush() error {
	if err := w.begin(); err != nil {
		return err
	}
	w.w.Flush()
	return w.w.Error()
}

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
