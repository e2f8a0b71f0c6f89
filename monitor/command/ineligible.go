package command

import (
	"cmp"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// Unfit says why each of these tasks cannot be revoked or terminated, as far as that is known without asking; empty if it can.
// Whoever offers either goes by it, so that what is offered is taken.
func (s *Service) Ineligible(action string, list []state.Task) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	held, workers, pools := s.Inspector.Holders(ids...), s.workers(), s.Inspector.PeekTopology().Pools
	reasons := make([]string, len(list))
	for i := range list {
		t := &list[i]
		worker := cmp.Or(held[t.ID].Node, value(t.Worker))
		reasons[i] = ineligible(action, t, held[t.ID], workers[worker], pools[worker].Kind)
	}
	return reasons
}

// unfit is Unfit for one task, with the worker that it is with, and whose word on it, if it has given one.
func ineligible(action string, t *state.Task, held remote.Holder, w state.Worker, pool string) string {
	terminate := action == actTerminate
	running := held.Running || t.State == state.Started && t.Lost == nil
	switch {
	case t.State.Final():
		return "already finished"
	case !terminate && running:
		return "already running: only terminate ends it"
	case !terminate:
		return ""
	case !running && t.State == state.Pending:
		return "never received"
	case !running && (t.State == state.Received || t.State == state.Retry):
		return "not running"
	case !running:
		return "not running any more"
	case w.Status == state.Offline || w.Name == "":
		return "on an offline worker"
	}
	if kind := strings.ToLower(pool); kind == poolThreads || kind == poolSolo {
		return "in a " + kind + " pool, which cannot end a task"
	}
	return ""
}

// held is a task that no event has told of, as the worker has that holds it.
func heldTask(id string, h remote.Holder) state.Task {
	t := state.Task{ID: id, State: state.Received, Worker: &h.Node}
	if h.Running {
		t.State = state.Started
	}
	if h.Name != "" {
		t.Name = &h.Name
	}
	return t
}
