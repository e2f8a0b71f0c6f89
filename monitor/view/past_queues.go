package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// staleQueues is how old the newest record of the log may be before it says nothing of queues at an instant.
const staleQueues = 3 * time.Minute

// errPassed ends the reading of the log at the instant.
var errPassed = errors.New("later than the instant")

// Queues returns the queues as the log of minutes had them, with the depths of the hour before. Its time is that of the last
// record, zero if there is none of these minutes: depths and rates are unknown then.
func (p *Past) Queues(ctx context.Context) (queues.Snapshot, error) {
	var decoder alert.Decoder
	var records []queues.Record
	err := p.store.AlertRecords(ctx, p.Instant().Add(-time.Hour), func(b []byte) error {
		r, err := decoder.Decode(b)
		switch {
		case err != nil: // of another version
			return nil //nolint:nilerr // as said
		case r.At > p.at:
			return errPassed
		}
		records = append(records, queueRecord(r))
		return nil
	})
	if err != nil && !errors.Is(err, errPassed) {
		return queues.Snapshot{}, fmt.Errorf("read depths of queues: %w", err)
	}
	s := queues.Replay(records)
	s.Source = "one record a minute"
	if !s.At.IsZero() && p.Instant().Sub(s.At) > staleQueues {
		s.At = time.Time{}
		for i := range s.Queues {
			q := &s.Queues[i]
			*q = queues.Queue{Queue: q.Queue, Hidden: q.Hidden, Depths: q.Depths}
			q.Ready = nil
		}
	}
	s.Queues = p.withNames(s.Queues)
	return s, nil
}

// withNames adds queues of which only tasks tell that there were any.
func (p *Past) withNames(list []queues.Queue) []queues.Queue {
	for name := range p.counts.ByQueue {
		if !slices.ContainsFunc(list, func(q queues.Queue) bool { return q.Name == name }) {
			list = append(list, queues.Queue{Queue: broker.Queue{Name: name}, Hidden: queues.Hidden(name)})
		}
	}
	slices.SortFunc(list, func(a, b queues.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// WaitingTasks returns how many tasks had been sent to each queue and not been received by a worker, as far as clients
// told: without task_send_sent_event they are not known.
func (p *Past) WaitingTasks() map[string]int {
	waiting := make(map[string]int)
	for page := (state.Page{Older: &state.Position{}}); page.Older != nil; {
		page = p.cluster.Tasks(state.Query{States: []state.State{state.Pending}, From: nonZero(page.Older), Limit: maxPage})
		for i := range page.Tasks {
			if t := &page.Tasks[i]; t.Queue != nil && t.Lost == nil && t.Dismissed == nil {
				waiting[*t.Queue]++
			}
		}
	}
	return waiting
}

func queueRecord(r *alert.Record) queues.Record {
	q := queues.Record{
		From: time.UnixMicro(r.From).UTC(), At: time.UnixMicro(r.At).UTC(), Consumers: make(map[string][]string),
		Received: make(map[string]int64), Unrouted: make(map[string]int64),
	}
	if r.QueuesKnown {
		q.Ready = make(map[string]int64, len(r.Queues))
		for _, v := range r.Queues {
			q.Ready[v.Name] = v.Ready
		}
	}
	for _, w := range r.Workers {
		for _, name := range w.Queues {
			if w.Alive {
				q.Consumers[name] = append(q.Consumers[name], w.Name)
			}
		}
	}
	for i := range r.Cells {
		switch c := &r.Cells[i]; {
		case c.Received == 0 || c.Queue == rollup.Other:
		case c.Queue != "":
			q.Received[c.Queue] += c.Received
		default:
			q.Unrouted[c.Worker] += c.Received
		}
	}
	return q
}
