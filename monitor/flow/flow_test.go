package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/flow"
)

// well is a cluster in which work flows.
func well() flow.Observation {
	return flow.Observation{
		Connected: true, Heard: true, For: time.Hour, WorkersOnline: 3, Queues: []flow.Queue{{Name: "mail", Consumers: new(int64(2))}},
		Waiting: &flow.Wait{}, Recent: flow.Ends{Succeeded: 990, Failed: 10}, Usual: flow.Ends{Succeeded: 99_000, Failed: 1_000},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(o *flow.Observation)
		level  flow.Level
		reason string // the first one
		path   string
	}{
		"all is well":      {func(*flow.Observation) {}, flow.Flowing, "3 workers are online.", "/workers"},
		"no connection":    {func(o *flow.Observation) { o.Connected, o.For = false, 3*time.Minute }, flow.Unknown, "Umbel has had no connection to the broker for 3 min.", "/settings"},
		"just started":     {func(o *flow.Observation) { o.For = 12 * time.Second }, flow.Unknown, "Umbel has been listening for 12 s, and needs 30 s.", "/settings"},
		"nothing heard":    {func(o *flow.Observation) { o.Heard = false }, flow.Unknown, "No worker and no task has been heard of.", "/settings"},
		"not writing":      {func(o *flow.Observation) { o.Backpressure = true }, flow.Unknown, "Umbel receives nothing until its history can be written.", "/settings"},
		"not reading":      {func(o *flow.Observation) { o.Unreadable = true }, flow.Unknown, "The history cannot be read.", "/settings"},
		"far behind":       {func(o *flow.Observation) { o.Behind, o.BehindWorker = 5*time.Minute, "w1" }, flow.Unknown, "What Umbel knows of w1 is 5 min old.", "/settings"},
		"behind":           {func(o *flow.Observation) { o.Behind, o.BehindWorker = 40*time.Second, "w1" }, flow.Degraded, "What Umbel knows of w1 is 40 s old.", "/workers"},
		"nobody reads":     {func(o *flow.Observation) { o.Unwatched, o.Queues = true, nil }, flow.Flowing, "3 workers are online.", "/workers"},
		"cannot read":      {func(o *flow.Observation) { o.WorkersOnline, o.Queues = 0, nil }, flow.Stuck, "No worker is online.", "/workers"},
		"no worker":        {func(o *flow.Observation) { o.WorkersOnline, o.Queues[0].Ready = 0, 1 }, flow.Stuck, "Work waits, and no worker is online.", "/workers"},
		"no worker needed": {func(o *flow.Observation) { o.WorkersOnline = 0 }, flow.Flowing, "No worker is online, and nothing waits.", "/workers"},
		"nobody consumes": {
			func(o *flow.Observation) { o.Queues[0].Ready, o.Queues[0].Consumers = 1_200, new(int64(0)) },
			flow.Stuck, "1,200 messages wait in mail, and nobody consumes from it.", "/queues/mail",
		},
		"deaf": {
			func(o *flow.Observation) { o.Queues[0].Ready, o.Queues[0].Taken = 1, new(false) },
			flow.Stuck, "1 message waits in mail, and its consumers, which run nothing, took none for a minute.", "/queues/mail",
		},
		"busy": {
			func(o *flow.Observation) {
				o.Queues[0].Ready, o.Queues[0].Taken, o.Queues[0].Busy = 2, new(false), true
			},
			flow.Degraded, "2 messages wait in mail, and its consumers, which are busy, took none for a minute.", "/queues/mail",
		},
		"grows": {func(o *flow.Observation) {
			q := &o.Queues[0]
			q.Ready, q.Before, q.In, q.Out = 500, new(int64(300)), new(5.), new(4.)
		}, flow.Degraded, "mail grows: 500 messages wait, 300 five minutes ago.", "/queues/mail"},
		"not sent": {
			func(o *flow.Observation) {
				o.Stopped = []flow.Outbox{{Name: "shop & co", Tasks: 107, AtLeast: true, For: 4 * time.Minute}}
			},
			flow.Degraded, "The relay of the outbox shop & co has stopped: at least 107 tasks wait to be sent, and none was taken for 4 min.",
			"/outbox/app?outbox=shop+%26+co",
		},
		"waits": {
			func(o *flow.Observation) {
				o.Waiting = &flow.Wait{Tasks: 1, Oldest: 6 * time.Minute, Query: "state:pending"}
			},
			flow.Degraded, "1 task waits to start, the oldest for 6 min; up to 5 min is usual.", "/tasks?q=state%3Apending",
		},
		"waits as usual": {func(o *flow.Observation) {
			o.Waiting, o.UsualWait = &flow.Wait{Tasks: 1, Oldest: 6 * time.Minute}, 4*time.Minute
		}, flow.Flowing, "3 workers are online.", "/workers"},
		"fails": {
			func(o *flow.Observation) { o.Recent.Failed = 100 },
			flow.Degraded, "9.2 % of the tasks that ended in the last 10 minutes failed; 1 % is usual.", "/tasks?q=finished%3A-10m..+state%3Afailure",
		},
		"all fail": {
			func(o *flow.Observation) { o.Recent = flow.Ends{Failed: 30} },
			flow.Stuck, "100 % of the tasks that ended in the last 10 minutes failed; 1 % is usual.", "/tasks?q=finished%3A-10m..+state%3Afailure",
		},
		"all fail as usual": {func(o *flow.Observation) { o.Recent, o.Usual = flow.Ends{Failed: 30}, flow.Ends{Failed: 1_000} }, flow.Flowing, "3 workers are online.", "/workers"},
		"too few to tell":   {func(o *flow.Observation) { o.Recent = flow.Ends{Failed: 4} }, flow.Flowing, "3 workers are online.", "/workers"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := well()
			test.change(&o)
			v := flow.Judge(o)
			if v.Level != test.level {
				t.Errorf("level = %s, want %s", v.Level, test.level)
			}
			if diff := cmp.Diff([]string{test.reason, test.path}, []string{v.Reasons[0].Text, v.Reasons[0].Path}); diff != "" {
				t.Errorf("first reason (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeNamesFewQueues(t *testing.T) {
	t.Parallel()
	o := well()
	for i := range 30 {
		o.Queues = append(o.Queues, flow.Queue{Name: fmt.Sprint("q", i), Ready: 1, Consumers: new(int64(0))})
	}
	v := flow.Judge(o)
	if got, want := v.Reasons[5].Text, "25 more queues are like that."; got != want {
		t.Errorf("sixth reason = %q, want %q", got, want)
	}
}

// grade orders the levels from the best.
func grade(l flow.Level) int {
	return slices.Index([]flow.Level{flow.Flowing, flow.Degraded, flow.Stuck, flow.Unknown}, l)
}

// TestLaws checks what holds for all observations: the level is that of the gravest reason, the order of queues does not
// matter, nothing is concluded without a connection, and what is worse in one respect is not judged better.
func TestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := observations().Draw(t, "observation")
		v := flow.Judge(o)
		worst := slices.MaxFunc(v.Reasons, func(a, b flow.Reason) int { return grade(a.Level) - grade(b.Level) })
		if v.Level != worst.Level || v.Reasons[0].Level != v.Level {
			t.Fatalf("level %s, first reason %s, gravest %s", v.Level, v.Reasons[0].Level, worst.Level)
		}
		for _, r := range v.Reasons {
			if !strings.HasSuffix(r.Text, ".") || !strings.HasPrefix(r.Path, "/") {
				t.Fatalf("reason %+v is no sentence, or leads nowhere", r)
			}
		}
		if !o.Connected && v.Level != flow.Unknown {
			t.Fatalf("level without a connection = %s", v.Level)
		}
		other := o
		other.Queues = slices.Clone(o.Queues)
		slices.Reverse(other.Queues)
		if diff := cmp.Diff(v, flow.Judge(other)); diff != "" {
			t.Fatalf("with queues in another order (-before +after):\n%s", diff)
		}
		worse := worsened(t, o)
		if w := flow.Judge(worse); grade(w.Level) < grade(v.Level) {
			t.Fatalf("worse is judged %s, not %s: %+v", w.Level, v.Level, worse)
		}
	})
}

func observations() *rapid.Generator[flow.Observation] {
	return rapid.Custom(func(t *rapid.T) flow.Observation {
		number := func(most int64) int64 { return rapid.Int64Range(0, most).Draw(t, "number") }
		yes := func() bool { return rapid.Bool().Draw(t, "yes") }
		o := flow.Observation{
			Connected: number(9) > 0, Heard: number(9) > 0, For: time.Duration(number(120)) * time.Second, WorkersOnline: int(number(2)),
			Behind: time.Duration(number(90)-30) * time.Second, BehindWorker: "w",
			Recent: flow.Ends{Succeeded: number(100), Failed: number(100)}, Usual: flow.Ends{Succeeded: number(1_000), Failed: number(100)},
			UsualWait: time.Duration(number(600)) * time.Second,
		}
		if yes() {
			o.Waiting = &flow.Wait{Tasks: number(3), Oldest: time.Duration(number(1_200)) * time.Second}
		}
		if yes() {
			o.Queues = []flow.Queue{}
		}
		for i := range number(8) {
			q := flow.Queue{Name: fmt.Sprint("q", i), Ready: number(200), Busy: yes()}
			if yes() {
				q.Consumers = new(number(2))
			}
			if yes() {
				q.Taken = new(yes())
			}
			if yes() {
				q.Before, q.In, q.Out = new(number(200)), new(float64(number(5))), new(float64(number(5)))
			}
			o.Queues = append(o.Queues, q)
		}
		return o
	})
}

// worsened returns o with one thing worse.
func worsened(t *rapid.T, o flow.Observation) flow.Observation {
	o.Queues = slices.Clone(o.Queues)
	n := rapid.Int64Range(1, 50).Draw(t, "more")
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		o.Recent.Failed += n
	case 1:
		moved := min(n, o.Recent.Succeeded)
		o.Recent.Succeeded, o.Recent.Failed = o.Recent.Succeeded-moved, o.Recent.Failed+moved
	case 2:
		if o.Waiting != nil {
			o.Waiting = &flow.Wait{Tasks: o.Waiting.Tasks + n, Oldest: o.Waiting.Oldest + time.Duration(n)*time.Minute}
		}
	case 3:
		o.WorkersOnline = 0
	case 4:
		o.Connected = false
	case 5:
		o.Backpressure = true
	default:
		if len(o.Queues) > 0 {
			o.Queues[0].Ready += n
			o.Queues[0].Consumers = new(int64(0))
		}
	}
	return o
}
