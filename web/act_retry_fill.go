package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// maxMarked is how much of a value that must be typed in is shown in its place, in bytes.
const maxMarked = 60

// markedHint says what stands in a field for a value that must be typed in. It is no JSON, so that it cannot be sent.
const markedHint = "type a value in place of each ‹…›"

// filled fills in the arguments as far as events show them, and marks what must be typed in. It returns what to say about
// them, empty if nothing could be filled in.
func filled(fields []templates.Input, t *state.Task) string {
	known, open := 0, 0
	for i, f := range fields {
		var repr *string
		switch f.Name {
		case "args":
			repr = t.Args
		case "kwargs":
			repr = t.Kwargs
		}
		if repr == nil {
			continue
		}
		v, ok := celery.ReadRepr(*repr)
		ok = ok && (v.Kind == celery.ValueDict) == (f.Name == "kwargs") && v.Container()
		var w formWriter
		w.value(&v, 0)
		if !ok || w.open > 0 && w.broken == len(v.Items) || w.text.Len() > celery.MaxArguments/2 {
			fields[i].Hint = "From events, possibly truncated: " + truncate.Text(*repr, maxHint)
			continue
		}
		fields[i].Value = w.text.String()
		known, open = known+len(v.Items)-w.broken, open+w.broken
		if w.open > 0 {
			fields[i].Hint += " In it, " + markedHint + "."
		}
		if w.object != "" {
			fields[i].Hint += " Kombu 5.3 and newer read " + w.object + " as " + w.objectText + "."
		}
	}
	if known == 0 || open == 0 {
		return ""
	}
	return fmt.Sprintf("The arguments are not known in full: %d of %d are filled in from events. For the rest, %s.", known, known+open, markedHint)
}

// formWriter writes a value as JSON for a form, with marks in place of what JSON does not know or what was cut.
type formWriter struct {
	text               strings.Builder
	open               int // marks
	broken             int // items of the outermost container that hold marks
	object, objectText string
}

func (w *formWriter) value(v *celery.Value, level int) {
	if b, ok := v.JSON(); ok {
		w.text.Write(b)
		return
	}
	begin, end := "[", "]"
	switch v.Kind {
	case celery.ValueList, celery.ValueTuple:
	case celery.ValueDict:
		begin, end = "{", "}"
	default:
		w.mark(v)
		return
	}
	gap, last := " ", ""
	if level == 0 {
		gap, last = "\n  ", "\n"
		begin += "\n  "
	}
	w.text.WriteString(begin)
	for i := range v.Items {
		if i > 0 {
			w.text.WriteString("," + gap)
		}
		before := w.open
		if v.Kind == celery.ValueDict && v.Items[i].Kind != celery.ValueCut {
			if key, ok := v.Keys[i].JSON(); ok && v.Keys[i].Kind == celery.ValueText {
				w.text.Write(key)
			} else {
				w.mark(&v.Keys[i])
			}
			w.text.WriteString(": ")
		}
		if w.value(&v.Items[i], level+1); level == 0 && w.open > before {
			w.broken++
		}
	}
	w.text.WriteString(last + end)
}

// mark writes what is known of a value that must be typed in.
func (w *formWriter) mark(v *celery.Value) {
	w.open++
	text := v.String()
	if object, ok := celery.ParseReprObjects(text); ok && w.object == "" && json.Valid(object) {
		w.object, w.objectText = string(object), text
	}
	w.text.WriteString("‹" + truncate.Text(strings.Join(strings.Fields(text), " "), maxMarked) + "›")
}
