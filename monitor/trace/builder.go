package trace

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
)

// Builder collects tasks, and writes them as a trace. The zero value collects nothing yet; Header is what is known beforehand.
type Builder struct {
	Header Header
	// Hide removes the payload of an event for those who may not see it; nil leaves it in. It sets what Header.Payload will be.
	Hide func(e *state.Event)

	fields []field
	text   bytes.Buffer // lines, one after the other
	lines  []place
}

// place is a line of the text.
type place struct {
	at, rank   int64 // by which lines are ordered
	start, end int
}

// Task adds a task: what had been received and concluded of it by Header.Until. It reports whether there was anything. The
// error is ErrTooLarge, or that of the saved events.
func (b *Builder) Task(id string, saved []byte) (bool, error) {
	if b.fields == nil {
		b.fields = fields()
	}
	until, before, later := b.Header.Until.UnixMicro(), b.Header.Events, false
	concluded, err := state.EachSaved(id, saved, func(s *state.SavedEvent) {
		e := &s.Event
		if e.ReceivedMicros = cmp.Or(e.ReceivedMicros, e.Micros); e.ReceivedMicros > until {
			later = true
			return
		}
		if b.Hide != nil {
			b.Hide(e)
		}
		b.Header.Events++
		if first := time.UnixMicro(e.ReceivedMicros).UTC(); b.Header.First.IsZero() || first.Before(b.Header.First) {
			b.Header.First = first
		}
		b.add(e.ReceivedMicros, s.Repaired, func() { writeEvent(&b.text, b.fields, s) })
	})
	if err != nil {
		return false, err
	}
	if b.Header.Events == before {
		return false, nil
	}
	b.Header.Tasks++
	if k := concluded; k != nil && !later && k.At <= until {
		b.add(k.At, 0, func() {
			b.line(line{Type: typeConclusion, At: k.At, Task: id, Reason: k.Reason, Evidence: k.Evidence})
		})
	}
	if b.Header.Tasks > MaxTasks || b.text.Len() > maxSaved {
		return false, ErrTooLarge
	}
	return true, nil
}

// Workers adds the workers as they were at an instant.
func (b *Builder) Workers(w Workers) error {
	l := line{Type: typeWorkers, At: w.At, Clock: w.Clock}
	for _, saved := range w.Saved {
		l.Workers = append(l.Workers, json.RawMessage(saved))
	}
	b.add(w.At, 0, func() { b.line(l) })
	if b.text.Len() > maxSaved {
		return ErrTooLarge
	}
	return nil
}

func (b *Builder) line(l line) {
	writeValue(&b.text, l)
	b.text.WriteByte('\n')
}

func (b *Builder) add(at, rank int64, write func()) {
	start := b.text.Len()
	write()
	b.lines = append(b.lines, place{at, rank, start, b.text.Len()})
}

// WriteTo writes the trace.
func (b *Builder) WriteTo(w io.Writer) (int64, error) {
	slices.SortStableFunc(b.lines, func(x, y place) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.rank, y.rank)) })
	b.Header.Version, b.Header.Payload = Version, b.Hide == nil
	counted := &counter{w: w}
	z := gzip.NewWriter(counted)
	var ends bytes.Buffer
	writeValue(&ends, b.Header)
	ends.WriteByte('\n')
	if _, err := z.Write(ends.Bytes()); err != nil {
		return counted.n, err
	}
	for _, l := range b.lines {
		if _, err := z.Write(b.text.Bytes()[l.start:l.end]); err != nil {
			return counted.n, err
		}
	}
	ends.Reset()
	writeValue(&ends, struct {
		Type   string `json:"type"`
		Events int    `json:"events"`
	}{typeEnd, b.Header.Events})
	ends.WriteByte('\n')
	if _, err := z.Write(ends.Bytes()); err != nil {
		return counted.n, err
	}
	err := z.Close()
	return counted.n, err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
