package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// TestFlowersAddresses leads from the addresses of Flower's pages to those that show the same.
func TestFlowersAddresses(t *testing.T) {
	t.Parallel()
	h, _ := acting(t, newBackend(t, state.Options{}), web.Options{})
	for path, want := range map[string]struct {
		status   int
		location string
	}{
		"/ops/worker/celery@a":     {http.StatusFound, "/ops/workers/celery@a"},
		"/ops/worker/celery%40a":   {http.StatusFound, "/ops/workers/celery@a"},
		"/ops/worker/a%2Fb%25":     {http.StatusFound, "/ops/workers/a%2Fb%25"},
		"/ops/task/id/with/slash":  {http.StatusFound, "/ops/tasks/id%2Fwith%2Fslash"},
		"/ops/broker":              {http.StatusFound, "/ops/queues"},
		"/ops/task":                {http.StatusNotFound, ""},
		"/ops/tasks?state=FAILURE": {http.StatusOK, ""},
		"/ops/workers":             {http.StatusOK, ""},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := request(t, h, http.MethodGet, path, "")
			if w.Code != want.status || w.Header().Get("Location") != want.location {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Header().Get("Location"), want.status, want.location)
			}
		})
	}
}

// TestFlowersElements finds by their ids what scripts find on Flower's pages.
func TestFlowersElements(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	b.happen(state.TaskReceived, "waits", 200)
	b.happen(state.TaskReceived, "runs", 201)
	b.happen(state.TaskStarted, "runs", 202)
	h, _ := acting(t, b, web.Options{})
	for path, want := range map[string]struct {
		status      int
		has, hasNot []string
	}{
		"/ops/workers": {http.StatusOK, []string{`id="workers-table"`, `<tr id="celery%40a"`, `id="url_prefix" value="/ops"`}, nil},
		"/ops/workers/celery@a": {http.StatusOK, []string{
			`id="workername"`, `id="worker-shutdown"`, `id="worker-pool-restart"`, `id="worker-pool-grow"`, `id="worker-pool-shrink"`,
			`id="worker-pool-autoscale"`, `id="worker-add-consumer"`,
		}, nil},
		"/ops/workers/nobody": {http.StatusNotFound, []string{"Unknown worker"}, nil},
		"/ops/tasks":          {http.StatusOK, []string{`id="tasks-table"`}, nil},
		"/ops/tasks/waits":    {http.StatusOK, []string{`id="taskid"`, `id="task-revoke"`}, []string{`id="task-terminate"`}},
		"/ops/tasks/runs":     {http.StatusOK, []string{`id="taskid"`, `id="task-terminate"`}, []string{`id="task-revoke"`}},
		"/ops/tasks/task-00":  {http.StatusOK, []string{`id="taskid"`}, []string{`id="task-revoke"`, `id="task-terminate"`}},
		"/ops/tasks/nothing":  {http.StatusNotFound, []string{"Unknown task"}, nil},
		"/ops/queues":         {http.StatusOK, []string{`id="queue-table"`}, nil},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := request(t, h, http.MethodGet, path, "")
			if w.Code != want.status {
				t.Errorf("status %d, want %d", w.Code, want.status)
			}
			for _, text := range want.has {
				if !strings.Contains(w.Body.String(), text) {
					t.Errorf("page lacks %s", text)
				}
			}
			for _, text := range want.hasNot {
				if strings.Contains(w.Body.String(), text) {
					t.Errorf("page has %s", text)
				}
			}
		})
	}
}
