package simulate_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/simulate"
)

func TestNewRefusesImpossibleOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options simulate.Options
		want    string
	}{
		"no start":        {simulate.Options{}, "simulate: Start is required"},
		"negative rate":   {simulate.Options{Start: start(), Rate: -1}, "simulate: Rate is -1, must be 0 to 100000"},
		"rate no number":  {simulate.Options{Start: start(), Rate: math.NaN()}, "simulate: Rate is NaN, must be 0 to 100000"},
		"rate too high":   {simulate.Options{Start: start(), Rate: 1e9}, "simulate: Rate is 1e+09, must be 0 to 100000"},
		"too few workers": {simulate.Options{Start: start(), Workers: 5}, "simulate: Workers is 5, must be 0 or at least 6"},
		"negative length": {simulate.Options{Start: start(), Length: -1}, "simulate: Length is -1ns, must not be negative"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := simulate.New(tt.options)
			if err == nil || err.Error() != tt.want {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSameSeedSameSimulation(t *testing.T) {
	t.Parallel()
	o := simulate.Options{Seed: 7, Rate: 30, Workers: 8}
	same := func(a, b simulate.Delivery) bool {
		return a.At.Equal(b.At) && a.Redelivered == b.Redelivered && a.RoutingKey == b.RoutingKey && bytes.Equal(a.Body, b.Body)
	}
	first, second := record(t, o, 5*time.Minute), record(t, o, 5*time.Minute)
	if got, want := len(second.deliveries), len(first.deliveries); got != want {
		t.Fatalf("second telling has %d messages, want %d", got, want)
	}
	for i, want := range first.deliveries {
		if got := second.deliveries[i]; !same(got, want) {
			t.Fatalf("message %d of the second telling = %s at %v, want %s at %v", i, got.Body, got.At, want.Body, want.At)
		}
	}
	o.Seed = 8
	if other := record(t, o, time.Minute); slices.EqualFunc(first.deliveries[:100], other.deliveries[:100], same) {
		t.Error("another seed runs the same simulation")
	}
}

func TestMessagesLookLikeCelerys(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 1, Length: 4 * time.Minute}, time.Hour)
	s.decode(t)
	last := start()
	for i, d := range s.deliveries {
		if d.At.Before(last) {
			t.Fatalf("delivery %d arrives at %v, before its predecessor at %v", i, d.At, last)
		}
		last = d.At
		if d.ContentType != "application/json" || d.ContentEncoding != "utf-8" {
			t.Fatalf("delivery %d is %q in %q", i, d.ContentType, d.ContentEncoding)
		}
		if slices.ContainsFunc(d.Body, func(b byte) bool { return b < ' ' || b > '~' }) {
			t.Fatalf("delivery %d is not printable ASCII: %q", i, d.Body)
		}
	}
	for _, e := range s.events {
		d := s.deliveries[e.message]
		want := strings.ReplaceAll(e.Type, "-", ".")
		if d.Body[0] == '[' {
			want = "task.multi"
		}
		if d.RoutingKey != want {
			t.Errorf("routing key of %s = %q, want %q", e.Type, d.RoutingKey, want)
		}
		age := d.At.Sub(time.UnixMicro(int64(e.Timestamp * 1e6)))
		if e.Hostname == "" || e.PID == 0 || e.Clock == 0 || e.UTCOffset == nil || age < -3*time.Second {
			t.Errorf("%s lacks a common field, or is %v old: %+v", e.Type, age, e)
		}
		if strings.HasPrefix(e.Type, "task-") && len(e.UUID) != 36 {
			t.Errorf("%s has the id %q", e.Type, e.UUID)
		}
		if strings.ContainsAny(e.Exception+e.Traceback, "{}") && !strings.Contains(e.Exception, "SMTPRecipientsRefused") {
			t.Errorf("placeholder left in %q or %q", e.Exception, e.Traceback)
		}
		if n := len([]rune(e.Args)); n > 1040 {
			t.Errorf("args of %d characters: %s", n, e.Args)
		}
	}
}

// The spelling of whole bodies: key order, spaces, floats and escapes are those of captures from
// Celery 5.7.0.
func TestBodiesKeepCelerysKeyOrder(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 1}, 4*time.Minute)
	const common = `"hostname" "utcoffset" "pid" "clock"`
	want := map[string]string{
		"task-sent":        common + ` "uuid" "root_id" "parent_id" "name" "args" "kwargs" "retries" "eta" "expires" "queue" "exchange" "routing_key" "timestamp" "type"`,
		"task-received":    common + ` "uuid" "name" "args" "kwargs" "root_id" "parent_id" "retries" "eta" "expires" "timestamp" "type"`,
		"task-started":     common + ` "uuid" "timestamp" "type"`,
		"task-succeeded":   common + ` "uuid" "result" "runtime" "timestamp" "type"`,
		"task-failed":      common + ` "uuid" "exception" "traceback" "timestamp" "type"`,
		"task-retried":     common + ` "uuid" "exception" "traceback" "timestamp" "type"`,
		"task-rejected":    common + ` "uuid" "requeue" "timestamp" "type"`,
		"task-revoked":     common + ` "uuid" "terminated" "signum" "expired" "timestamp" "type"`,
		"task-progress":    common + ` "uuid" "current" "total" "timestamp" "type"`,
		"worker-heartbeat": common + ` "freq" "active" "processed" "loadavg" "sw_ident" "sw_ver" "sw_sys" "timestamp" "type"`,
		"worker-online":    common + ` "freq" "active" "processed" "loadavg" "sw_ident" "sw_ver" "sw_sys" "timestamp" "type"`,
		"worker-offline":   common + ` "freq" "active" "processed" "loadavg" "sw_ident" "sw_ver" "sw_sys" "timestamp" "type"`,
	}
	got := make(map[string]string)
	for _, d := range s.deliveries {
		for o := range strings.SplitSeq(strings.Trim(string(d.Body), "[]"), "}, {") {
			kind := o[strings.LastIndex(o, `"type": "`)+1:]
			kind = strings.TrimRight(strings.TrimPrefix(kind, `type": "`), `"}`)
			if _, seen := want[kind]; !seen || got[kind] == want[kind] {
				continue
			}
			got[kind] = keys("{" + strings.Trim(o, "{}") + "}")
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("keys of events (-got +want):\n%s", diff)
	}
}

// keys lists the quoted keys of a flat JSON object in order. Separators are Python's.
func keys(object string) string {
	var list []string
	inText, escaped, begin := false, false, 0
	for i, r := range object {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case r == '"':
			if inText = !inText; inText {
				begin = i
			} else if strings.HasPrefix(object[i+1:], ": ") {
				list = append(list, object[begin:i+1])
			}
		}
	}
	return strings.Join(list, " ")
}

func TestClocksRiseInEveryProcess(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 3}, 3*time.Minute)
	s.decode(t)
	lanes := make(map[string][]event)
	for _, e := range s.events {
		if !s.deliveries[e.message].Redelivered {
			lanes[e.process()] = append(lanes[e.process()], e)
		}
	}
	for lane, events := range lanes {
		slices.SortFunc(events, func(a, b event) int { return int(a.Clock - b.Clock) })
		for i := 1; i < len(events); i++ {
			if a, b := events[i-1], events[i]; a.Clock == b.Clock || a.Timestamp > b.Timestamp {
				t.Errorf("process %s: clock %d at %f, then clock %d at %f", lane, a.Clock, a.Timestamp, b.Clock, b.Timestamp)
			}
		}
	}
	if len(lanes) < 30 {
		t.Errorf("%d processes speak, want 30 and more", len(lanes))
	}
}

func TestRateIsKeptOnAverage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rate   float64
		length time.Duration
	}{
		"default": {0, 8 * time.Minute},
		"slow":    {2, 60 * time.Minute},
		"fast":    {100, 4 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := record(t, simulate.Options{Seed: 5, Rate: tt.rate, Length: tt.length, Truth: true}, 10*time.Hour)
			want := tt.rate
			if want == 0 {
				want = 20
			}
			got := float64(len(s.cluster.Truth())) / tt.length.Seconds()
			if got < want*0.85 || got > want*1.15 {
				t.Errorf("%.1f tasks per second, want %v ± 15 %%", got, want)
			}
		})
	}
}
