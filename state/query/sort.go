package query

import (
	"strings"

	"github.com/umbelhq/umbel/state"
)

// ParseSort parses a sort order: a sortable field, with - before it for the greatest value first. An empty text is the
// zero Sort.
func ParseSort(s string) (Sort, bool) {
	if s == "" {
		return Sort{}, true
	}
	name, descending := strings.CutPrefix(s, "-")
	f, ok := FieldNamed(name)
	if !ok || !f.Sortable() {
		return Sort{}, false
	}
	return Sort{Field: f, Ascending: !descending}, true
}

// String returns the text that ParseSort parses to s.
func (s Sort) String() string {
	switch {
	case s.Field == 0 && !s.Ascending:
		return ""
	case s.Ascending:
		return s.Field.String()
	default:
		return "-" + s.Field.String()
	}
}

// Sortable reports whether lists can be sorted by the field.
func (f Field) Sortable() bool {
	switch f {
	case Sent, Received, Started, Finished, Wait, Run, Retries:
		return true
	default:
		return f.Alphabetical()
	}
}

// Alphabetical reports whether lists that are sorted by the field are in the order of words.
func (f Field) Alphabetical() bool {
	return f == Name || f == Worker || f == Queue || f == State
}

// Word returns what a task has in an alphabetical field, empty if that is not known.
func (f Field) Word(t *state.Task) string {
	var word *string
	switch f {
	case Name:
		word = t.Name
	case Worker:
		word = t.Worker
	case Queue:
		word = t.Queue
	case State:
		return string(t.State)
	default:
	}
	if word == nil {
		return ""
	}
	return *word
}
