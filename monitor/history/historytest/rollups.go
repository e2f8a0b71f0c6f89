package historytest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// minutes are the tests of history.RollupReader.
func minutes() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"minutes are added up":                   minutesAreAddedUp,
		"minutes are added up to longer spans":   minutesAreAddedUpToLongerSpans,
		"minutes are selected":                   minutesAreSelected,
		"minutes are added up by a field":        minutesAreAddedUpByAField,
		"a failed batch counts nothing":          aFailedBatchCountsNothing,
		"histograms are left out":                histogramsAreLeftOut,
		"what is counted is there after a close": countsOutliveAClose,
	}
}

// day is midnight of 2026-11-21 UTC, in minutes.
const day = 1_795_219_200 / 60

func durations(micros ...int64) []byte {
	var h rollup.Histogram
	for _, v := range micros {
		h.Add(v)
	}
	return h.Encode()
}

func charged(at int64) history.Rollup {
	return history.Rollup{
		At: at, Name: "charge", Worker: "celery@a", Queue: "billing",
		Received: 4, Succeeded: 3, Failed: 2, Retried: 1, Wait: durations(10), Run: durations(1000, 2000),
	}
}

func (c storeTest) count(cells ...history.Rollup) {
	c.Helper()
	c.write(history.Batch{Checkpoint: &history.Checkpoint{Rollups: cells}})
}

// counted reads the cells of a span from the first minute of the day to before another.
func (c storeTest) counted(span time.Duration, to int64, names ...string) []history.Rollup {
	c.Helper()
	var cells []history.Rollup
	r := history.RollupRange{From: time.Unix(60*day, 0), To: time.Unix(60*to, 0), Span: span, Names: names, Wait: true, Run: true}
	if err := c.Rollups(c.Context(), r, func(m history.Rollup) error {
		m.Wait, m.Run = slices.Clone(m.Wait), slices.Clone(m.Run)
		cells = append(cells, m)
		return nil
	}); err != nil {
		c.Fatalf("read minutes: %v", err)
	}
	return cells
}

func (c storeTest) same(what string, got []history.Rollup, want ...history.Rollup) {
	c.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func minutesAreAddedUp(c storeTest) {
	c.count(charged(day), history.Rollup{At: day + 1})
	c.count(history.Rollup{At: day, Name: "charge", Worker: "celery@a", Queue: "billing", Failed: 5, Run: durations(3000)})
	want := charged(day)
	want.Failed, want.Run = 7, durations(1000, 2000, 3000)
	c.same("minutes", c.counted(time.Minute, day+2), want, history.Rollup{At: day + 1})
}

func minutesAreAddedUpToLongerSpans(c storeTest) {
	c.count(charged(day), charged(day+9), charged(day+10), charged(day+59), charged(day+60))
	sum := func(at, n int64) history.Rollup {
		m := charged(at)
		m.Received, m.Succeeded, m.Failed, m.Retried = 4*n, 3*n, 2*n, n
		var wait, run []int64
		for range n {
			wait, run = append(wait, 10), append(run, 1000, 2000)
		}
		m.Wait, m.Run = durations(wait...), durations(run...)
		return m
	}
	c.same("ten minutes", c.counted(10*time.Minute, day+120), sum(day, 2), sum(day+10, 1), sum(day+50, 1), sum(day+60, 1))
	c.same("hours", c.counted(time.Hour, day+120), sum(day, 4), sum(day+60, 1))
	c.same("days", c.counted(24*time.Hour, day+120), sum(day, 5))
}

func minutesAreSelected(c storeTest) {
	other := charged(day)
	other.Name, other.Worker, other.Queue = "mail", "celery@b", ""
	watched := history.Rollup{At: day}
	c.count(charged(day-1), charged(day), other, watched, charged(day+1))
	c.same("one minute", c.counted(time.Minute, day+1), watched, charged(day), other)
	c.same("of one name", c.counted(time.Minute, day+1, "mail"), watched, other)
	c.same("of two names", c.counted(time.Minute, day+1, "mail", "charge"), watched, charged(day), other)
	c.same("of a name that nothing has", c.counted(time.Minute, day+1, "nope"), watched)
	c.same("of no time", c.counted(time.Minute, day))

	r := history.RollupRange{
		From: time.Unix(60*day-1, 0), To: time.Unix(60*day+1, 0), Span: time.Minute,
		Workers: []string{"celery@b"}, Queues: []string{"billing"}, Wait: true, Run: true,
	}
	var cells []history.Rollup
	if err := c.Rollups(c.Context(), r, func(m history.Rollup) error { cells = append(cells, m); return nil }); err != nil {
		c.Fatal(err)
	}
	c.same("of a worker and a queue", cells, watched, other)
}

// Who tells minutes apart by one field gets as few as the store knows, or all: what they add up to is the same.
func minutesAreAddedUpByAField(c storeTest) {
	other := charged(day)
	other.Worker, other.Queue, other.Wait, other.Run = "celery@b", "refunds", durations(30), nil
	c.count(charged(day), other, history.Rollup{At: day, Name: "mail", Received: 1}, history.Rollup{At: day})
	r := history.RollupRange{
		From: time.Unix(60*day, 0), To: time.Unix(60*day+60, 0), Span: time.Minute, Names: []string{"charge"}, Wait: true, By: history.ByName, Places: true,
	}
	sum, queues := history.Rollup{}, []string{}
	if err := c.Rollups(c.Context(), r, func(m history.Rollup) error {
		if m.Name != "charge" {
			return nil
		}
		sum.Received += m.Received
		queues = slices.Concat(queues, m.Queues, []string{m.Queue})
		var err error
		sum.Wait, err = rollup.MergeEncoded(sum.Wait, m.Wait)
		return err
	}); err != nil {
		c.Fatal(err)
	}
	slices.Sort(queues)
	queues = slices.DeleteFunc(slices.Compact(queues), func(name string) bool { return name == "" })
	if want := []string{"billing", "refunds"}; !slices.Equal(queues, want) {
		c.Errorf("queues = %v, want %v", queues, want)
	}
	if diff := cmp.Diff(history.Rollup{Received: 8, Wait: durations(10, 30)}, sum); diff != "" {
		c.Errorf("sum (-want +got):\n%s", diff)
	}
}

// A batch that cannot be written as a whole leaves no trace: it is repeated.
func aFailedBatchCountsNothing(c storeTest) {
	torn := charged(day)
	torn.Run = []byte("torn")
	c.count(charged(day))
	b := history.Batch{Checkpoint: &history.Checkpoint{Rollups: []history.Rollup{charged(day), torn}}}
	if _, err := c.Write(c.Context(), b); err == nil {
		c.Fatal("a batch with a broken histogram was written")
	}
	c.same("minutes", c.counted(time.Minute, day+1), charged(day))
}

func histogramsAreLeftOut(c storeTest) {
	c.count(charged(day))
	want := charged(day)
	want.Wait, want.Run = nil, nil
	r := history.RollupRange{From: time.Unix(60*day, 0), To: time.Unix(60*day+60, 0), Span: time.Minute}
	var cells []history.Rollup
	if err := c.Rollups(c.Context(), r, func(m history.Rollup) error { cells = append(cells, m); return nil }); err != nil {
		c.Fatal(err)
	}
	c.same("minutes", cells, want)
}

func countsOutliveAClose(c storeTest) {
	c.count(charged(day))
	c.reopen()
	c.count(history.Rollup{At: day, Name: "charge", Worker: "celery@a", Queue: "billing", Failed: 1})
	want := charged(day)
	want.Failed = 3
	c.same("minutes", c.counted(time.Minute, day+1), want)
}
