package alert_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	var d alert.Decoder // one for all, as a log is read
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "a", "b", "\x00\xff", "shop.pay"})
		n := rapid.Int64Range(0, 1<<40)
		some := rapid.IntRange(0, 3)
		r := &alert.Record{From: n.Draw(t, "from"), Connected: rapid.Bool().Draw(t, "connected"), QueuesKnown: rapid.Bool().Draw(t, "known")}
		r.At = r.From + n.Draw(t, "length")
		for range some.Draw(t, "cells") {
			r.Cells = append(r.Cells, history.Rollup{Name: word.Draw(t, "w"), Worker: word.Draw(t, "w"), Queue: word.Draw(t, "w"), Failed: n.Draw(t, "n"), Run: []byte(word.Draw(t, "w"))})
		}
		for range some.Draw(t, "workers") {
			r.Workers = append(r.Workers, alert.Worker{Name: word.Draw(t, "w"), Alive: rapid.Bool().Draw(t, "alive"), Running: n.Draw(t, "n"), Queues: rapid.SliceOfN(word, 0, 3).Draw(t, "queues"), Offset: state.ClockOffset{Low: -n.Draw(t, "low"), High: state.OpenHigh}})
		}
		for range some.Draw(t, "others") {
			r.Queues = append(r.Queues, alert.Queue{Name: word.Draw(t, "w"), Ready: n.Draw(t, "n"), Taken: alert.TakenSome})
			r.Running = append(r.Running, alert.Running{Name: word.Draw(t, "w"), TaskID: word.Draw(t, "w"), Worker: word.Draw(t, "w"), Since: n.Draw(t, "n")})
			r.Sends = append(r.Sends, alert.Send{Name: word.Draw(t, "w"), Client: word.Draw(t, "w"), N: n.Draw(t, "n"), First: 5, Last: n.Draw(t, "n")})
			r.Counts = append(r.Counts, alert.Count{Query: word.Draw(t, "w"), N: n.Draw(t, "n")})
		}
		got, err := d.Decode(r.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("record (-want +got):\n%s", diff)
		}
	})
}

func TestQueriesOfRecordsAreEdited(t *testing.T) {
	t.Parallel()
	var d alert.Decoder
	record := (&alert.Record{From: 1, At: 2, Counts: []alert.Count{{Query: "args:sesame", N: 3}, {Query: "state:failure", N: 4}}}).Encode()
	same, err := d.Edit(record, func(query string) string { return query })
	if err != nil || !bytes.Equal(same, record) {
		t.Errorf("an edit that changes nothing: %v, %v", same, err)
	}
	edited, err := d.Edit(record, func(query string) string { return strings.ReplaceAll(query, "sesame", "********") })
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Decode(edited)
	if want := []alert.Count{{Query: "args:********", N: 3}, {Query: "state:failure", N: 4}}; err != nil || !cmp.Equal(got.Counts, want) || got.At != 2 {
		t.Errorf("edited record = %+v, %v, want the counts %v", got, err, want)
	}
	if _, err := d.Edit([]byte("x"), strings.ToUpper); err == nil {
		t.Error("what is no record was edited")
	}
}

// FuzzDecode decodes anything.
func FuzzDecode(f *testing.F) {
	f.Add((&alert.Record{From: 1, At: 2, Cells: []history.Rollup{{Name: "a"}}}).Encode())
	f.Add([]byte{1})
	f.Fuzz(func(_ *testing.T, b []byte) {
		var d alert.Decoder
		_, _ = d.Decode(b)
	})
}

// TestARecordIsSmall holds the documented size of the log.
func TestARecordIsSmall(t *testing.T) {
	t.Parallel()
	r := alert.Record{From: 1_795_262_400_000_000, At: 1_795_262_460_000_000}
	for i := range 100 {
		var run rollup.Histogram
		for j := range int64(20) {
			run.Add(1_000_000 + j*j*10_000*int64(i))
		}
		r.Cells = append(r.Cells, history.Rollup{
			Name: fmt.Sprintf("shop.tasks.number_%d", i%25), Worker: fmt.Sprintf("celery@worker-%d", i/25), Queue: "celery", Received: 20, Succeeded: 20, Run: run.Encode(), Wait: run.Encode(),
		})
	}
	if n := len(r.Encode()); n > 4_000 {
		t.Errorf("a record of 100 cells has %d bytes, want at most 4,000", n)
	} else {
		t.Logf("%d bytes", n)
	}
}
