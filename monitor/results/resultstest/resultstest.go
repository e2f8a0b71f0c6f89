// Package resultstest is the conformance suite of result backends: what Celery itself has stored is read the same
// from each of them.
package resultstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/results"
)

// timeout bounds every wait.
const timeout = 3 * time.Minute

// store has Celery's own backend store results, as a worker would.
const store = `
import sys, traceback
from celery import Celery
from celery.app.task import Context
app = Celery('t', backend=sys.argv[1])
app.conf.update(result_extended=True, **eval(sys.argv[2]))
def request(id, **more):
    return Context(id=id, task='shop.pay', args=[1, 'ü'], kwargs={'k': [None]}, hostname='w1@h', retries=2, children=[],
                   delivery_info={'routing_key': 'billing'}, ignore_result=False, **more)
def put(id, result, state, tb=None):
    app.backend.store_result(id, result, state, traceback=tb, request=request(id))
put('five', 5, 'SUCCESS')
put('nested', {'a': [1, 2.5, None, True, '東京'], 'b': {'c': -2**70 if app.conf.result_serializer != 'msgpack' else 0}}, 'SUCCESS')
put('nothing', None, 'SUCCESS')
try:
    {}['ü']
except KeyError as e:
    put('failed', e, 'FAILURE', traceback.format_exc())
put('progress', {'done': 3}, 'PROGRESS')
put("quote'd", 'x', 'SUCCESS')
`

// Options of the suite.
type Options struct {
	URL      string // of the backend, as Celery writes it
	Settings string // further settings of Celery, as a dict of Python
	// Objects says that exceptions are stored as Python objects, so that arguments beside them are unknown.
	Objects bool
	// Foreign is Undecodable for records of another serializer, empty if they are decoded.
	Foreign string
	// Aborts says that tasks can be marked as aborted.
	Aborts bool
	// Groups says that groups that were saved are read.
	Groups bool
}

// Run has Celery store results and reads them with b.
func Run(t *testing.T, o Options, b results.Backend) {
	t.Helper()
	if o.Settings == "" {
		o.Settings = "{}"
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	before := time.Now()
	python := exec.CommandContext(ctx, testenv.Python(t), "-c", store, o.URL, o.Settings) //nolint:gosec // a test's own
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("store results with Celery: %v\n%s", err, out)
	}
	extended := results.Result{
		Name: "shop.pay", Args: json.RawMessage(`[1,"ü"]`), Kwargs: json.RawMessage(`{"k":[null]}`), Worker: "w1@h",
		Queue: "billing", Retries: new(int64(2)),
	}
	with := func(f func(r *results.Result)) results.Result {
		r := extended
		f(&r)
		return r
	}
	for id, want := range map[string]results.Result{
		"five": with(func(r *results.Result) { r.Status, r.Value = "SUCCESS", json.RawMessage("5") }),
		"nested": with(func(r *results.Result) {
			r.Status = "SUCCESS"
			r.Value = json.RawMessage(`{"a":[1,2.5,null,true,"東京"],"b":{"c":-1180591620717411303424}}`)
		}),
		"nothing":  with(func(r *results.Result) { r.Status, r.Value = "SUCCESS", json.RawMessage("null") }),
		"failed":   with(func(r *results.Result) { r.Status, r.Exception, r.Repr = "FAILURE", "KeyError: ü", "KeyError('ü')" }),
		"progress": with(func(r *results.Result) { r.Status, r.Value = "PROGRESS", json.RawMessage(`{"done":3}`) }),
		"quote'd":  with(func(r *results.Result) { r.Status, r.Value = "SUCCESS", json.RawMessage(`"x"`) }),
	} {
		got, err := b.Result(ctx, id)
		if err != nil {
			t.Fatalf("result %s: %v", id, err)
		}
		want.TaskID = id
		if o.Objects && want.Exception != "" {
			want.Args, want.Kwargs = nil, nil
		}
		if o.Foreign != "" {
			if got.Undecodable != o.Foreign || got.Value != nil || got.Status != "" && got.Status != want.Status {
				t.Errorf("result %s = %+v, want %q", id, got, o.Foreign)
			}
			continue
		}
		notAlike := cmpopts.IgnoreFields(results.Result{}, "DoneAt", "NaiveTime", "Traceback")
		if diff := cmp.Diff(want, got, notAlike, sameJSON()); diff != "" {
			t.Errorf("result %s (-want +got):\n%s", id, diff)
		}
		if id == "failed" != strings.Contains(got.Traceback, "KeyError: 'ü'") {
			t.Errorf("traceback of %s = %q", id, got.Traceback)
		}
		if final := id != "progress"; final && (got.DoneAt.Before(before.Add(-time.Minute)) || got.DoneAt.After(time.Now().Add(time.Minute))) {
			t.Errorf("%s was done at %v, want about now", id, got.DoneAt)
		}
	}
	if _, err := b.Result(ctx, "unknown"); !errors.Is(err, results.ErrMissing) {
		t.Errorf("result of an unknown task: error %v, want %v", err, results.ErrMissing)
	}
	if o.Aborts {
		testAbort(ctx, t, o, b)
	}
	if o.Groups {
		testGroups(ctx, t, o, b)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := b.Result(ended, "five"); !errors.Is(err, context.Canceled) {
		t.Errorf("read with an ended context: error %v, want %v", err, context.Canceled)
	}
}

// aborted prints how Celery sees tasks that were marked.
const aborted = `
import sys
from celery import Celery
from celery.contrib.abortable import AbortableAsyncResult
app = Celery(backend=sys.argv[1])
app.conf.update(eval(sys.argv[2]))
for task in ("unseen", "progress", "five"):
    r = AbortableAsyncResult(task, app=app)
    print(task, r.state, r.is_aborted(), r.result)
`

// grouped saves a group, and has a chord wait for the three tasks of its header.
const grouped = `
import sys
from celery import Celery
from celery.result import AsyncResult, GroupResult
app = Celery(backend=sys.argv[1])
app.conf.update(eval(sys.argv[2]))
inner = GroupResult('inner', [AsyncResult('b', app=app)], app=app)
GroupResult('outer', [AsyncResult('a', app=app), inner], app=app).save()
app.backend.set_chord_size('chord', 3)
`

// testGroups reads groups as Celery stores them.
func testGroups(ctx context.Context, t *testing.T, o Options, b results.Backend) {
	t.Helper()
	python := exec.CommandContext(ctx, testenv.Python(t), "-c", grouped, o.URL, o.Settings) //nolint:gosec // a test's own
	if out, err := python.CombinedOutput(); err != nil {
		t.Fatalf("store groups with Celery: %v\n%s", err, out)
	}
	for id, want := range map[string]results.StoredGroup{
		"outer": {Members: []string{"a", "inner", "b"}}, "chord": {Size: 3},
	} {
		got, err := results.ReadGroup(ctx, b, id)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("group %s: %v (-want +got):\n%s", id, err, diff)
		}
	}
	if _, err := results.ReadGroup(ctx, b, "unknown"); !errors.Is(err, results.ErrMissing) {
		t.Errorf("unknown group: error %v, want %v", err, results.ErrMissing)
	}
}

// testAbort marks a task that has no record, one that runs and one that has succeeded.
func testAbort(ctx context.Context, t *testing.T, o Options, b results.Backend) {
	t.Helper()
	for range 2 {
		for _, id := range []string{"unseen", "progress", "five"} {
			if err := results.Abort(ctx, b, id, time.Now()); err != nil {
				t.Fatalf("abort %s: %v", id, err)
			}
		}
	}
	got, err := b.Result(ctx, "unseen")
	if err != nil || got.Status != results.Aborted {
		t.Errorf("result of an aborted task = %+v, %v", got, err)
	}
	python := exec.CommandContext(ctx, testenv.Python(t), "-c", aborted, o.URL, o.Settings) //nolint:gosec // a test's own
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("read results with Celery: %v\n%s", err, out)
	}
	if want := "unseen ABORTED True None\nprogress ABORTED True None\nfive SUCCESS False 5\n"; string(out) != want {
		t.Errorf("Celery reads %q, want %q", out, want)
	}
}

// sameJSON compares JSON by what it says.
func sameJSON() cmp.Option {
	return cmp.Transformer("decode", func(m json.RawMessage) any {
		d := json.NewDecoder(bytes.NewReader(m))
		d.UseNumber()
		var v any
		if m == nil || d.Decode(&v) != nil {
			return string(m)
		}
		return v
	})
}
