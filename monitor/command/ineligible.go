package command

import (
	"cmp"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// Ineligible returns, for each task, why it cannot be revoked or terminated, as far as that is known without inspecting
// workers; empty if it can. Pages offer only what it allows.
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

// ineligible is Ineligible for one task, with its worker and what that has reported of it.
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

// heldTask returns a task without events, as the worker that holds it reported it.
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
