package ingest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

const (
	// maxLate is how old an event may be that counts for alerts: what a broker has held for long says nothing of now.
	maxLate = 15 * time.Minute
	// runningPages bounds how many tasks are looked through for those that run longest, runningOfName how many of one name are
	// told.
	runningPages  = 20
	runningOfName = 5
)

// receipts count what was received since the last record of the log that alerts are judged by.
type receipts struct {
	counts rollup.Recorder
	sends  map[[2]string]*alert.Send // by name and client
	since  int64                     // µs, end of the last record, 0 before the first
	broken bool                      // the broker was away meanwhile
}

// lateness returns how long before its receipt an event happened, by its sender's clock as far as Umbel can correct it.
func lateness(e *state.Event, ch state.Change) time.Duration {
	return time.Duration(e.ReceivedMicros-(e.Micros-ch.OffsetMicros)) * time.Microsecond
}

func (r *receipts) add(e *state.Event, ch state.Change) {
	if lateness(e, ch) > maxLate {
		return
	}
	if e.Kind == state.TaskSent && ch.New {
		r.addSend(e, ch)
		return
	}
	at := *e
	at.Micros, ch.OffsetMicros = e.ReceivedMicros, 0
	r.counts.Add(&at, ch)
}

func (r *receipts) addSend(e *state.Event, ch state.Change) {
	k := [2]string{ch.Name, e.Hostname}
	s := r.sends[k]
	if s == nil && (ch.Name == "" || len(r.sends) >= alert.MaxSends) {
		return
	}
	at := e.Micros - ch.OffsetMicros
	if s == nil {
		if r.sends == nil {
			r.sends = make(map[[2]string]*alert.Send)
		}
		s = &alert.Send{Name: strings.Clone(ch.Name), Client: strings.Clone(e.Hostname), First: at, Last: at}
		r.sends[[2]string{s.Name, s.Client}] = s
	}
	s.N++
	s.First, s.Last = min(s.First, at), max(s.Last, at)
}

// TakeRecord returns what events have told since the last call, and the workers and running tasks now, as alerts are judged
// by it. It is nil at the first call, which begins the first interval.
func (in *Ingester) TakeRecord() *alert.Record {
	in.healthMu.Lock()
	connected := in.brokerHealth.Connected
	in.healthMu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.time().UnixMicro()
	taken := &in.receipts
	r := &alert.Record{From: taken.since, At: now, Connected: connected && !taken.broken, Cells: taken.counts.Take()}
	for _, s := range taken.sends {
		r.Sends = append(r.Sends, *s)
	}
	slices.SortFunc(r.Sends, func(a, b alert.Send) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Client, b.Client))
	})
	clear(taken.sends)
	taken.since, taken.broken = now, !connected
	if r.From == 0 || r.From >= now { // the first one, or the clock was set back
		return nil
	}
	offsets := map[string]int64{}
	for _, w := range in.cluster.Workers() {
		if w.ClockOffsetMicros != nil {
			offsets[w.Name] = *w.ClockOffsetMicros
		}
		if len(r.Workers) < alert.MaxWorkers {
			r.Workers = append(r.Workers, recordOf(w))
		}
	}
	r.Running = in.longestRunning(offsets)
	return r
}

func recordOf(w state.Worker) alert.Worker {
	v := alert.Worker{Name: w.Name, Alive: w.Status == state.Online, Running: int64(w.RunningTasks)}
	if v.Offset = (state.ClockOffset{Low: state.OpenLow, High: state.OpenHigh}); w.ClockOffset != nil {
		v.Offset = *w.ClockOffset
	}
	if w.Active != nil {
		v.Running = *w.Active
	}
	if w.LastReport != nil {
		v.Queues = w.LastReport.Queues
	}
	return v
}

// longestRunning returns the tasks that run for longest, some of each name. mu is held.
func (in *Ingester) longestRunning(offsets map[string]int64) []alert.Running {
	var all []alert.Running
	q := state.Query{States: []state.State{state.Started}, Limit: 500}
	for range runningPages {
		page := in.cluster.Tasks(q)
		for i := range page.Tasks {
			t := &page.Tasks[i]
			if t.Name == nil || t.Worker == nil || t.StartedAt == 0 {
				continue
			}
			all = append(all, alert.Running{Name: *t.Name, TaskID: t.ID, Worker: *t.Worker, Since: t.StartedAt - offsets[*t.Worker]})
		}
		if q.From = page.Older; q.From == nil {
			break
		}
	}
	slices.SortFunc(all, func(a, b alert.Running) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.TaskID, b.TaskID))
	})
	names := map[string]int{}
	all = slices.DeleteFunc(all, func(v alert.Running) bool {
		names[v.Name]++
		return names[v.Name] > runningOfName
	})
	return slices.Clone(all[:min(len(all), alert.MaxRunning)])
}
