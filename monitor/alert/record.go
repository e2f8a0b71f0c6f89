package alert

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Bounds of a record. What is beyond is left out.
const (
	MaxWorkers = 1_000
	MaxQueues  = 500
	MaxRunning = 500
	MaxSends   = 500
	MaxCounts  = 100
	maxRecord  = 4 << 20 // bytes, uncompressed
)

// Record is what rules can ask about one interval. Times are µs since 1970 UTC by the local clock. It is never changed once
// it is in the log.
type Record struct {
	From, At int64 // start and end of the interval, which begins with the receipt of the first event after the last record
	// Connected says that events could arrive all the time.
	Connected bool
	Cells     []history.Rollup // events that were received in the interval, without At
	Workers   []Worker
	// QueuesKnown says that the depths of queues could be read.
	QueuesKnown bool
	Queues      []Queue
	Running     []Running // for longest, some of each name
	Sends       []Send
	Counts      []Count
}

// Worker is a worker at the end of an interval.
type Worker struct {
	Name    string
	Alive   bool     // its heartbeats come
	Running int64    // tasks
	Queues  []string // that it consumes from, none if unknown
	// Offset bounds how far its wall clock is ahead of the local one.
	Offset state.ClockOffset
}

// Queue is a queue at the end of an interval.
type Queue struct {
	Name  string
	Ready int64
	Taken Taken
}

// Taken says whether messages were taken from a queue.
type Taken uint8

// What may be known of that.
const (
	TakenUnknown Taken = iota
	TakenNone
	TakenSome
)

// Running is a task that was running at the end of an interval.
type Running struct {
	Name, TaskID, Worker string
	Since                int64
}

// Send is how often a client sent tasks of a name in an interval.
type Send struct {
	Name, Client string
	N            int64
	First, Last  int64
}

// Count is how many tasks match a query.
type Count struct {
	Query string // in its one spelling
	N     int64
}

// ErrRecord is wrapped by the errors of Decode.
var ErrRecord = errors.New("not a record of a known version")

// Versions of the encoding, of which the first had no offsets of clocks.
const (
	firstVersion  = 1
	recordVersion = 2
)

// Encode returns the form that Decoder.Decode reads.
func (r *Record) Encode() []byte {
	w := writer{known: map[string]uint64{}}
	w.number(r.From, r.At-r.From, flags(r.Connected, r.QueuesKnown))
	w.number(int64(len(r.Cells)))
	for i := range r.Cells {
		c := &r.Cells[i]
		w.text(c.Name, c.Worker, c.Queue)
		w.number(c.Received, c.Succeeded, c.Failed, c.Retried)
		w.bytes(c.Wait)
		w.bytes(c.Run)
	}
	w.number(int64(len(r.Workers)))
	for _, v := range r.Workers {
		w.text(v.Name)
		w.number(flags(v.Alive, false), v.Running, int64(len(v.Queues)))
		w.text(v.Queues...)
		w.number(v.Offset.Low, v.Offset.High)
	}
	w.number(int64(len(r.Queues)))
	for _, v := range r.Queues {
		w.text(v.Name)
		w.number(v.Ready, int64(v.Taken))
	}
	w.number(int64(len(r.Running)))
	for _, v := range r.Running {
		w.text(v.Name, v.TaskID, v.Worker)
		w.number(v.Since)
	}
	w.number(int64(len(r.Sends)))
	for _, v := range r.Sends {
		w.text(v.Name, v.Client)
		w.number(v.N, v.First, v.Last-v.First)
	}
	w.number(int64(len(r.Counts)))
	for _, v := range r.Counts {
		w.text(v.Query)
		w.number(v.N)
	}
	var packed bytes.Buffer
	packed.WriteByte(recordVersion)
	f, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid, and a buffer takes all
	_, _ = f.Write(w.b)
	_ = f.Close()
	return packed.Bytes()
}

func flags(a, b bool) int64 {
	n := int64(0)
	if a {
		n |= 1
	}
	if b {
		n |= 2
	}
	return n
}

// writer writes each text once.
type writer struct {
	b     []byte
	known map[string]uint64
}

func (w *writer) number(list ...int64) {
	for _, n := range list {
		w.b = binary.AppendVarint(w.b, n)
	}
}

func (w *writer) bytes(b []byte) {
	w.b = binary.AppendUvarint(w.b, uint64(len(b)))
	w.b = append(w.b, b...)
}

func (w *writer) text(list ...string) {
	for _, s := range list {
		if n, ok := w.known[s]; ok {
			w.b = binary.AppendUvarint(w.b, n)
			continue
		}
		w.known[s] = uint64(len(w.known)) + 1
		w.b = binary.AppendUvarint(w.b, 0)
		w.bytes([]byte(s))
	}
}

// Decoder decodes records. It keeps the texts of earlier ones, so that those of a whole log are in memory once.
type Decoder struct {
	texts map[string]string
	f     io.ReadCloser
	buf   bytes.Buffer
}

// maxInterned bounds the texts that a Decoder keeps.
const maxInterned = 100_000

// Edit edits the queries of a record, and returns record itself if none changes.
func (d *Decoder) Edit(record []byte, edit func(query string) string) ([]byte, error) {
	r, err := d.Decode(record)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, c := range r.Counts {
		r.Counts[i].Query = edit(c.Query)
		changed = changed || r.Counts[i].Query != c.Query
	}
	if !changed {
		return record, nil
	}
	return r.Encode(), nil
}

// Decode reads what Record.Encode wrote.
func (d *Decoder) Decode(b []byte) (*Record, error) {
	if len(b) == 0 || b[0] < firstVersion || b[0] > recordVersion {
		return nil, ErrRecord
	}
	if d.f == nil {
		d.f = flate.NewReader(nil)
	}
	if err := d.f.(flate.Resetter).Reset(bytes.NewReader(b[1:]), nil); err != nil { //nolint:forcetypeassert // as documented
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	d.buf.Reset()
	n, err := io.Copy(&d.buf, io.LimitReader(d.f, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if n > maxRecord {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrRecord, maxRecord)
	}
	if d.texts == nil || len(d.texts) > maxInterned {
		d.texts = make(map[string]string)
	}
	p := reader{b: d.buf.Bytes(), texts: d.texts, version: b[0]}
	r := p.record()
	if p.failed || len(p.b) > 0 {
		return nil, ErrRecord
	}
	return r, nil
}

// reader reads what writer wrote.
type reader struct {
	version byte
	b       []byte
	known   []string
	texts   map[string]string
	failed  bool
}

func (p *reader) record() *Record {
	r := &Record{From: p.number()}
	r.At = r.From + p.number()
	r.Connected, r.QueuesKnown = p.flags()
	r.Cells = many(p, func(c *history.Rollup) {
		c.Name, c.Worker, c.Queue = p.text(), p.text(), p.text()
		c.Received, c.Succeeded, c.Failed, c.Retried = p.number(), p.number(), p.number(), p.number()
		c.Wait, c.Run = bytes.Clone(p.bytes()), bytes.Clone(p.bytes())
	})
	r.Workers = many(p, func(w *Worker) {
		w.Name = p.text()
		w.Alive, _ = p.flags()
		w.Running = p.number()
		w.Queues = many(p, func(s *string) { *s = p.text() })
		w.Offset = state.ClockOffset{Low: state.OpenLow, High: state.OpenHigh}
		if p.version > firstVersion {
			w.Offset.Low, w.Offset.High = p.number(), p.number()
		}
	})
	r.Queues = many(p, func(q *Queue) { q.Name, q.Ready, q.Taken = p.text(), p.number(), Taken(p.number()) })
	r.Running = many(p, func(v *Running) { v.Name, v.TaskID, v.Worker, v.Since = p.text(), p.text(), p.text(), p.number() })
	r.Sends = many(p, func(s *Send) {
		s.Name, s.Client, s.N, s.First = p.text(), p.text(), p.number(), p.number()
		s.Last = s.First + p.number()
	})
	r.Counts = many(p, func(c *Count) { c.Query, c.N = p.text(), p.number() })
	return r
}

// many reads a list.
func many[T any](p *reader, read func(*T)) []T {
	n := p.number()
	if n < 0 || n > int64(len(p.b)) {
		p.failed = true
	}
	if p.failed || n == 0 {
		return nil
	}
	all := make([]T, n)
	for i := range all {
		if p.failed {
			return nil
		}
		read(&all[i])
	}
	return all
}

func (p *reader) number() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.failed, n = true, 0
	}
	p.b = p.b[n:]
	return v
}

func (p *reader) flags() (a, b bool) {
	n := p.number()
	return n&1 != 0, n&2 != 0
}

func (p *reader) length() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.failed, n = true, 0
	}
	p.b = p.b[n:]
	return v
}

func (p *reader) bytes() []byte {
	n := p.length()
	if n > uint64(len(p.b)) {
		p.failed, n = true, 0
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *reader) text() string {
	n := p.length()
	if n > uint64(len(p.known)) {
		p.failed = true
		return ""
	}
	if n > 0 {
		return p.known[n-1]
	}
	b := p.bytes()
	s, ok := p.texts[string(b)]
	if !ok {
		s = string(b)
		p.texts[s] = s
	}
	p.known = append(p.known, s)
	return s
}
