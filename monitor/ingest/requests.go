package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Of what nodes that follow ask of the one that leads.
const (
	answerEvery = time.Second
	answerPage  = 200 // requests at once
)

// WakeRequests has this node look at once for what others ask for, if it leads.
func (in *Ingester) WakeRequests() { signal(in.asked) }

// answer does what other nodes ask for, until ctx ends. A request is done once its tasks are saved: until then, it outlives this process.
func (in *Ingester) answer(ctx context.Context) {
	tick := time.NewTicker(answerEvery)
	defer tick.Stop()
	last := int64(0) // request that was applied
	for {
		if err := in.answerOnce(ctx, &last); err != nil && ctx.Err() == nil {
			in.log.Error("requests of other nodes not done", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-in.asked:
		case <-tick.C:
		}
	}
}

func (in *Ingester) answerOnce(ctx context.Context, last *int64) error {
	requests, err := in.shared.Asked(ctx, answerPage)
	if err != nil {
		return err
	}
	var done []int64
	for _, r := range requests {
		if r.Number > *last {
			if err := in.fulfil(ctx, r); err != nil {
				return err
			}
			*last = r.Number
		}
		if in.allSaved(r) {
			done = append(done, r.Number)
		}
	}
	if len(done) == 0 {
		return nil
	}
	return in.shared.Answered(ctx, done)
}

// fulfil applies a request. What can no longer be done is left out.
func (in *Ingester) fulfil(ctx context.Context, r history.NodeRequest) error {
	if r.Events == nil {
		err := in.changeUnfinished(ctx, r, nil)
		if errors.Is(err, ErrFinished) || errors.Is(err, history.ErrNotFound) {
			return nil
		}
		return err
	}
	var events []state.Event
	if err := state.EachJournaled(r.Events, func(s *state.SavedEvent) { events = append(events, s.Event) }); err != nil {
		in.log.Error("events of another node not folded", "error", err)
	}
	in.folding.Lock()
	defer in.folding.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	saved, unread := in.readStored(ctx, events)
	if unread != nil {
		return history.ErrUnreachable
	}
	in.applyRead(ctx, events, saved, nil, in.applyAgain)
	in.notify()
	return nil
}

// allSaved reports whether the tasks of a request are saved as they are in memory.
func (in *Ingester) allSaved(r history.NodeRequest) bool {
	ids := []string{r.Task}
	_ = state.EachJournaled(r.Events, func(s *state.SavedEvent) { ids = append(ids, s.Event.ID) }) // fulfil has logged its error
	in.mu.RLock()
	defer in.mu.RUnlock()
	return !slices.ContainsFunc(ids, in.cluster.HasUnsaved)
}
