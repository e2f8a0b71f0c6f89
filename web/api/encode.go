package api

import (
	"bufio"
	"encoding/csv"
	"io"

	lang "github.com/umbelhq/umbel/state/query"
)

// The formats of exports.
const (
	FormatCSV   = "csv"   // a header, then a line for each task, some of its fields
	FormatJSONL = "jsonl" // a line of JSON for each task
)

// Encoder writes tasks in an export format.
type Encoder struct {
	w      *bufio.Writer
	csv    *csv.Writer // on w, nil for JSONL
	fields []csvField
	line   []string // scratch
}

// NewEncoder returns an Encoder that writes to w. CSV has the columns cols, or the default ones if cols is empty.
func NewEncoder(w io.Writer, format string, cols []lang.Field) *Encoder {
	e := &Encoder{w: bufio.NewWriterSize(w, 64<<10)}
	if format == FormatJSONL {
		return e
	}
	e.csv, e.fields = csv.NewWriter(e.w), csvFields(cols)
	for _, f := range e.fields {
		e.line = append(e.line, f.name)
	}
	_ = e.csv.Write(e.line) // Flush has the error
	return e
}

// Task writes a task.
func (e *Encoder) Task(t Task) error {
	if e.csv == nil {
		return marshal(e.w, t)
	}
	for i, f := range e.fields {
		e.line[i] = f.value(&t)
	}
	return e.csv.Write(e.line)
}

// Flush writes what is buffered.
func (e *Encoder) Flush() error {
	if e.csv != nil {
		e.csv.Flush()
	}
	return e.w.Flush()
}
