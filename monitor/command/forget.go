package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxForget bounds how many workers one request may forget.
const maxForget = 1_000

// PreviewForget checks that workers can be forgotten and returns what that means.
func (s *Service) PreviewForget(workers []string) (Preview, error) {
	workers, err := s.forgettable(workers)
	if err != nil {
		return Preview{}, err
	}
	return Preview{Summary: "Forget " + joinNames(workers), Targets: workers}, nil
}

// Forget removes offline workers without unfinished tasks, all of them or none, and audits that. Nothing is sent. It returns
// how many were removed: one that sends an event meanwhile stays.
func (s *Service) Forget(ctx context.Context, caller Caller, workers []string) (int, error) {
	workers, err := s.forgettable(workers)
	if err != nil {
		return 0, err
	}
	// first: nothing is done without a record
	if err := s.record(ctx, caller, "forget", targets(workers), map[string]any{"workers": workers}); err != nil {
		return 0, err
	}
	n := 0
	for _, name := range workers {
		if s.forgetter.ForgetWorker(name) {
			s.Inspector.Forget(name)
			n++
		}
	}
	return n, nil
}

// forgettable returns workers, sorted and without duplicates, if all of them can be forgotten.
func (s *Service) forgettable(workers []string) ([]string, error) {
	if s.forgetter == nil {
		return nil, &Error{Kind: Conflict, Message: "workers cannot be forgotten here"}
	}
	if len(workers) == 0 || len(workers) > maxForget {
		return nil, &Error{Field: "workers", Message: fmt.Sprintf("workers must name 1 to %d workers", maxForget)}
	}
	var err error
	s.tasks.View(func(c state.View) {
		for i, name := range workers {
			if wrong := unforgettable(c, name); wrong != nil {
				wrong.Field = fmt.Sprintf("workers[%d]", i)
				err = wrong
				return
			}
		}
	})
	return slices.Compact(slices.Sorted(slices.Values(workers))), err
}

// unforgettable returns why a worker cannot be forgotten, nil if it can.
func unforgettable(c state.View, name string) *Error {
	w, known := c.Worker(name)
	switch {
	case !known:
		var names []string
		for _, w := range c.Workers() {
			names = append(names, w.Name)
		}
		return &Error{Kind: NotFound, Message: fmt.Sprintf("there is no worker %.255q", name), Nearest: query.Nearest(name, names)}
	case w.Status != state.Offline:
		return &Error{Kind: Conflict, Message: fmt.Sprintf("worker %s is %s: only offline workers can be forgotten", name, w.Status)}
	}
	if n := c.Unfinished(name); n > 0 {
		return &Error{Kind: Conflict, Message: fmt.Sprintf("worker %s still has %s", name, count(n, "unfinished task", "unfinished tasks"))}
	}
	return nil
}
