package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state/query"
)

// counted is what forty kinds of tasks did in one minute, 25 of each.
func counted(at int64) []history.Rollup {
	var cells []history.Rollup
	for i := range 40 {
		var wait, run rollup.Histogram
		for j := range int64(25) {
			wait.Add(1_000 * (j + at%7) * (j + 1))
			run.Add(50_000 * (j + at%11 + 1))
		}
		cells = append(cells, history.Rollup{
			At: at, Name: fmt.Sprint("app.tasks.n", i/4), Worker: fmt.Sprint("celery@w", i%4), Queue: "celery",
			Received: 25, Succeeded: 24, Failed: 1, Wait: wait.Encode(), Run: run.Encode(),
		})
	}
	return cells
}

func BenchmarkWriteMinutes(b *testing.B) {
	d := open(b, b.TempDir())
	defer closed(b, d)
	at := int64(29_920_320)
	for i := int64(0); b.Loop(); i++ { // a checkpoint each 5 s
		if _, err := d.Write(b.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: counted(at + i/12)}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadSeries reads what forty kinds of tasks did in two days.
func BenchmarkReadSeries(b *testing.B) {
	d := open(b, b.TempDir())
	defer closed(b, d)
	const minutes = 2 * 24 * 60
	first := int64(29_920_320)
	for at := first; at < first+minutes; at += 60 {
		var cells []history.Rollup
		for i := range int64(60) {
			cells = append(cells, counted(at+i)...)
		}
		if _, err := d.Write(b.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}}); err != nil {
			b.Fatal(err)
		}
	}
	now := time.Unix(60*(first+minutes), 0)
	named, err := query.Parse("name:app.tasks.n3")
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]rollup.Request{
		"1h":         {From: now.Add(-time.Hour)},
		"24h":        {From: now.Add(-24 * time.Hour)},
		"24h-counts": {From: now.Add(-24 * time.Hour), OmitHistograms: true},
		"24h-name":   {From: now.Add(-24 * time.Hour), Query: named},
		"24h-byname": {From: now.Add(-24 * time.Hour), GroupBy: rollup.ByName},
		"7d":         {From: now.Add(-7 * 24 * time.Hour)},
	} {
		r.To, r.Now = now, now
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := rollup.Read(b.Context(), d, d, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.ReportMetric(float64(d.Health().Size)/(40*minutes), "B/cell")
}
