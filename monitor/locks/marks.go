package locks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

const (
	runTimeAge  = time.Minute    // for how long a p99 is used
	runTimeSpan = 24 * time.Hour // that it is computed over
	maxRunTimes = 100            // names of tasks that it is computed for at once
	percentile  = 0.99
	endedLong   = time.Minute // ago: no release is on the way any more, whatever clocks say
)

// runTime is the p99 run time of a task, 0 if unknown.
type runTime struct {
	p99 time.Duration
	at  time.Time
}

// marks returns what is wrong with a lock, worst first.
func (t *tracker) marks(r *record, l *Lock, now time.Time) []Mark {
	if !r.goneAt.IsZero() {
		return []Mark{goneMark(r)}
	}
	if l.State != Processing && l.State != Held || r.holder == nil {
		return nil
	}
	var list []Mark
	h := r.holder
	if len(h.Others) > 0 {
		list = append(list, Mark{SecondRun, fmt.Sprintf("A run with the same call has started while another one was running (%s): the lock was gone in between.", h.Others[0])})
	}
	if text := t.stuck(r, l, now); text != "" {
		list = append(list, Mark{Stuck, text})
	}
	if l.AcquiredFrom == AcquiredTask && !r.renewed && !l.Persistent && r.p99 > 0 && h.Status.Active() {
		if ttl := l.ExpiresAt.Sub(l.AcquiredAt).Round(time.Second); ttl < 2*r.p99 {
			list = append(list, Mark{TooShort, fmt.Sprintf("Its TTL, %s, is below twice the p99 run time of the task, %s: it can expire in mid-run.", words(ttl), words(r.p99))})
		}
	}
	return list
}

// goneMark says that a lock is gone under its task.
func goneMark(r *record) Mark {
	why := "The lock was deleted while its task runs"
	if r.unseen {
		why = "The task runs without its lock, which has expired or was deleted"
	} else if !r.expiresAt.IsZero() && !r.goneAt.Before(r.expiresAt.Add(-sameExpiry)) {
		why = "The TTL of the lock has ended while its task runs"
	}
	switch {
	case r.provedAt.IsZero():
		return Mark{Expired, why + ": a second run can start."}
	case r.second != "":
		return Mark{SecondRun, why + ", and a second run has started: " + r.second + "."}
	default:
		return Mark{SecondRun, why + ", and the lock was taken again: a second run has started."}
	}
}

// stuck says why a lock holds back calls for nothing, empty if it does not.
func (t *tracker) stuck(r *record, l *Lock, now time.Time) string {
	h := r.holder
	if h.Status != Ended && h.Status != Lost {
		r.endedSeen = time.Time{}
		return ""
	}
	if r.endedSeen.IsZero() {
		r.endedSeen = now
	}
	if h.Status == Ended && now.Sub(r.endedSeen) < endedAfter && (h.EndedAt.IsZero() || now.Sub(h.EndedAt) < endedLong) {
		return ""
	}
	text := "Its task " + h.Why + "."
	if !h.Certain {
		text = "The newest task with this call " + h.Why + "."
	}
	if l.Persistent {
		return text + " Calls are turned away until somebody releases the lock."
	}
	return text + " Calls are turned away until the lock expires."
}

// words returns a duration in short: 45s, 10m, 1m30s.
func words(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// runTimes notes the p99 run times of the tasks of records, computed from the newest day of counts.
func (t *tracker) runTimes(ctx context.Context, list []*record) error {
	if t.options.Rollups == nil {
		return nil
	}
	now := t.options.Now()
	var names []string
	for _, r := range list {
		name := r.id.name
		if known, ok := t.runs[name]; name != "" && (!ok || now.Sub(known.at) > runTimeAge) && r.content.state != Completed && !slices.Contains(names, name) && len(names) < maxRunTimes {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		took := make(map[string]rollup.Histogram)
		span := history.RollupSpans()[1].Length
		r := history.RollupRange{From: now.Add(-runTimeSpan), To: now.Add(span), Span: span, Names: names, OmitCounts: true, Run: true, By: history.ByName}
		err := t.options.Rollups.Rollups(ctx, r, func(m history.Rollup) error {
			if m.Name == "" {
				return nil
			}
			all := took[m.Name]
			err := all.MergeSaved(m.Run)
			took[m.Name] = all
			return err
		})
		if err != nil {
			return fmt.Errorf("read run times: %w", err)
		}
		if len(t.runs) > MaxLocks {
			clear(t.runs)
		}
		for _, name := range names {
			t.runs[name] = runTime{time.Duration(took[name].Quantile(percentile)) * time.Microsecond, now}
		}
	}
	for _, r := range list {
		r.p99 = t.runs[r.id.name].p99
	}
	return nil
}
