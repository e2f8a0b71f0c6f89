package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
)

// began is before all receipts.
var began = time.Date(2026, 9, 21, 14, 0, 0, 0, time.UTC)

// history folds a random history, received a ms apart, and returns its saved tasks.
func history(t testing.TB, seed uint64) (tasks map[string][]byte, last time.Time) {
	t.Helper()
	c := state.New(state.Options{Track: true})
	var d celery.Decoder
	at := began.UnixMicro()
	o := eventgen.Options{Tasks: 5, Deaths: true, Custom: true, Revoked: true, Rejected: true, Doubled: true, Replaced: true}
	for _, body := range eventgen.New(seed, o).Events {
		d.Decode(body, 0, func(e *state.Event) {
			at += 1000
			e.ReceivedMicros = at
			c.Apply(e)
		})
	}
	for _, task := range c.Tasks(state.Query{Limit: 2}).Tasks {
		c.Conclude(task.ID, state.Conclusion{Reason: state.ReasonNotRunning, Evidence: "celery@a does not have it", At: at + 500})
	}
	tasks = map[string][]byte{}
	for _, u := range c.TakeUnsaved(500) {
		tasks[u.View.ID] = u.Events
	}
	return tasks, time.UnixMicro(at + 1000).UTC()
}

// file writes tasks as a trace.
func file(t testing.TB, h trace.Header, tasks map[string][]byte, workers ...trace.Workers) []byte {
	t.Helper()
	b := trace.Builder{Header: h}
	for id, saved := range tasks {
		if _, err := b.Task(id, saved); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range workers {
		if err := b.Workers(w); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if n, err := b.WriteTo(&out); err != nil || n != int64(out.Len()) {
		t.Fatalf("wrote %d bytes and reported %d: %v", out.Len(), n, err)
	}
	return out.Bytes()
}

// TestATraceHoldsWhatWasKept folds traces of random histories, and compares the tasks with those that were saved.
func TestATraceHoldsWhatWasKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Trials(100)) {
		tasks, end := history(t, seed)
		r, err := trace.NewReader(bytes.NewReader(file(t, trace.Header{Until: end}, tasks)))
		if err != nil {
			t.Fatal(err)
		}
		c := state.New(state.Options{Track: true})
		entries, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i := range entries {
			if err := entries[i].Apply(c, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := c.TakeUnsaved(500)
		if len(got) != len(tasks) || r.Header().Tasks != len(tasks) {
			t.Fatalf("seed %d: %d tasks, the header says %d, want %d", seed, len(got), r.Header().Tasks, len(tasks))
		}
		for _, u := range got {
			want, wantEvents, err := state.DecodeTask(u.View.ID, tasks[u.View.ID])
			if err != nil {
				t.Fatal(err)
			}
			task, events, err := state.DecodeTask(u.View.ID, u.Events)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, task, cmpopts.EquateNaNs()) + cmp.Diff(wantEvents, events); diff != "" {
				t.Errorf("seed %d: task %s (-kept +traced):\n%s", seed, u.View.ID, diff)
			}
		}
	}
}

// TestATraceEndsAtItsInstant leaves out what was received later.
func TestATraceEndsAtItsInstant(t *testing.T) {
	t.Parallel()
	tasks, _ := history(t, 3)
	until, want := began.Add(10*time.Millisecond), 0
	for id, saved := range tasks {
		receipts, err := state.Receipts(id, saved)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range receipts {
			if at <= until.UnixMicro() {
				want++
			}
		}
	}
	r, err := trace.NewReader(bytes.NewReader(file(t, trace.Header{Until: until}, tasks)))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := r.ReadAll()
	if err != nil || len(entries) != want || r.Header().Events != want || want == 0 {
		t.Errorf("%d entries, the header says %d events, want %d: %v", len(entries), r.Header().Events, want, err)
	}
}

// gzipped compresses lines.
func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	header = `{"umbel_trace":1,"until":"2026-09-21T14:00:01Z"}` + "\n"
	event  = `{"type":"task-started","uuid":"a","hostname":"w","pid":1,"clock":9,"timestamp":1789999200.5,` +
		`"umbel":{"received":1789999200500000,"clock":9}}` + "\n"
	ending = `{"type":"umbel-end","events":1}` + "\n"
)

// TestBadTraces are refused in a sentence.
func TestBadTraces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data    []byte
		want    error
		text    string
		entries int
	}{
		"whole":              {gzipped(t, header+event+ending), nil, "", 1},
		"empty":              {nil, trace.ErrNotTrace, "", 0},
		"text":               {[]byte(header), trace.ErrNotTrace, "", 0},
		"other JSON":         {gzipped(t, `{"a":1}`+"\n"), trace.ErrNotTrace, "", 0},
		"no instant":         {gzipped(t, `{"umbel_trace":1}`+"\n"), trace.ErrNotTrace, "", 0},
		"newer":              {gzipped(t, `{"umbel_trace":2,"until":{}}`+"\n"), trace.ErrNewer, "", 0},
		"without an end":     {gzipped(t, header+event), trace.ErrCutOff, "", 1},
		"cut in a line":      {gzipped(t, header+event+event[:40]), trace.ErrCutOff, "", 1},
		"cut in the file":    {gzipped(t, header+event+ending)[:30], trace.ErrCutOff, "", 0},
		"unreadable line":    {gzipped(t, header+event+"hello\n"+ending), nil, "line 3 cannot be read", 1},
		"no receipt":         {gzipped(t, header+`{"type":"task-started","uuid":"a","hostname":"w"}`+"\n"+ending), nil, "line 2 cannot be read", 0},
		"worker event":       {gzipped(t, header+strings.Replace(event, "task-started", "worker-online", 1)), nil, "line 2 cannot be read", 0},
		"after its end":      {gzipped(t, header+strings.Replace(event, "00500000", "99500000", 1)), nil, "line 2 is out of order", 0},
		"wrong count":        {gzipped(t, header+ending), nil, "has 0 events, and its last line counts 1", 0},
		"a line too long":    {gzipped(t, header+`{"type":"`+strings.Repeat("x", 9<<20)), trace.ErrTooLarge, "", 0},
		"a clock beyond all": {gzipped(t, header+strings.Replace(event, `"clock":9}`, `"clock":9000000000000000000}`, 1)), nil, "line 2 cannot be read", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := trace.NewReader(bytes.NewReader(tc.data))
			var entries []trace.Entry
			if err == nil {
				entries, err = r.ReadAll()
			}
			if tc.text != "" {
				if err == nil || err.Error() != tc.text {
					t.Errorf("error %v, want %q", err, tc.text)
				}
			} else if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if len(entries) != tc.entries {
				t.Errorf("%d entries were read, want %d", len(entries), tc.entries)
			}
		})
	}
}

// FuzzReader reads anything, and folds what it has read.
func FuzzReader(f *testing.F) {
	tasks, end := history(f, 2)
	r, err := gzip.NewReader(bytes.NewReader(file(f, trace.Header{Until: end}, tasks)))
	if err != nil {
		f.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(header + event + ending)
	f.Add(header + `{"type":"umbel-workers","at":1789999200500000,"workers":[{"Name":"w","Lives":[{}]},7]}` + "\n")
	f.Add(header + `{"type":"umbel-conclusion","at":1789999200500000,"task":"a","reason":"orphaned"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := trace.NewReader(bytes.NewReader(gzipped(t, text)))
		if err != nil {
			return
		}
		c := state.New(state.Options{Track: true})
		entries, _ := r.ReadAll()
		for i := range entries {
			if entries[i].Apply(c, nil) != nil {
				return
			}
		}
		c.Expire(r.End().UnixMicro())
		c.Tasks(state.Query{Limit: 500})
		c.Workers()
	})
}
