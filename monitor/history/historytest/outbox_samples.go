package historytest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func outboxSamples() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Samples of outboxes are kept":    storeTest.samplesKept,
		"Samples of outboxes are bounded": storeTest.samplesBounded,
	}
}

const firstMinute = 29_900_000

func minute(n int64) time.Time { return time.Unix(60*(firstMinute+n), 0) }

func (c storeTest) sample(s history.OutboxSample) {
	c.Helper()
	if err := c.SaveOutboxSample(c.Context(), s); err != nil {
		c.Fatalf("save sample: %v", err)
	}
}

func (c storeTest) samples(outbox string, from, to int64, step time.Duration) []history.OutboxSample {
	c.Helper()
	list, err := c.OutboxSamples(c.Context(), outbox, minute(from), minute(to), step)
	if err != nil {
		c.Fatalf("samples: %v", err)
	}
	return list
}

// samplesKept: a sample replaces that of its minute; steps have the highest values; other outboxes and times are left out.
func (c storeTest) samplesKept() {
	for i := range int64(6) {
		c.sample(history.OutboxSample{Outbox: "shop", Minute: firstMinute + i, Ready: 1})
		c.sample(history.OutboxSample{Outbox: "shop", Minute: firstMinute + i, Ready: i, OldestReady: time.Duration(10-i) * time.Second, DeadLetters: 2})
		c.sample(history.OutboxSample{Outbox: "other", Minute: firstMinute + i, Ready: 99})
	}
	if c.Durable {
		c.reopen()
	}
	want := []history.OutboxSample{
		{Outbox: "shop", Minute: firstMinute, Ready: 1, OldestReady: 9 * time.Second, DeadLetters: 2},
		{Outbox: "shop", Minute: firstMinute + 2, Ready: 3, OldestReady: 8 * time.Second, DeadLetters: 2},
		{Outbox: "shop", Minute: firstMinute + 4, Ready: 4, OldestReady: 6 * time.Second, DeadLetters: 2},
	}
	if diff := cmp.Diff(want, c.samples("shop", 1, 5, 2*time.Minute)); diff != "" {
		c.Errorf("samples by 2 minutes (-want +got):\n%s", diff)
	}
}

// samplesBounded: the samples that are too old go when a new one comes.
func (c storeTest) samplesBounded() {
	kept := int64(history.OutboxSampleRetention / time.Minute)
	for _, at := range []int64{0, 1, kept, kept + 1} {
		c.sample(history.OutboxSample{Outbox: "shop", Minute: firstMinute + at, Ready: at})
	}
	if got := c.samples("shop", 0, kept+2, time.Minute); len(got) != 3 || got[0].Ready != 1 {
		c.Errorf("samples = %+v, want all but the first", got)
	}
}
