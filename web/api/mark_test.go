package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

// texts are the texts of marks in a response.
func texts(t *testing.T, body string) []string {
	t.Helper()
	var d struct {
		Items []struct{ Text, Kind string } `json:"items"`
		Marks []struct{ Text, Kind string } `json:"marks"`
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("response %s: %v", body, err)
	}
	var list []string
	for _, m := range append(d.Items, d.Marks...) {
		list = append(list, m.Kind+" "+m.Text)
	}
	return list
}

func TestMarksAreSetListedAndDeleted(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t))
	set := send(t, h, http.MethodPost, "/marks", `{"text":"v2.3.1","at":"2026-11-21T11:30:00Z","link":"https://ci.example.com/17","service":"shop","version":"2.3.1"}`)
	got := decode(t, set.Body.String())
	want := map[string]any{
		"id": got["id"], "kind": "deploy", "at": "2026-11-21T11:30:00.000000Z", "text": "v2.3.1", "link": "https://ci.example.com/17",
		"service": "shop", "version": "2.3.1", "by": "ada", "workers": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" || set.Code != http.StatusCreated || got["id"] == nil {
		t.Errorf("set = %d, want 201 with an id (-want +got):\n%s", set.Code, diff)
	}
	send(t, h, http.MethodPost, "/marks", `{"text":"now","at":"2026-11-21T11:45:00Z"}`)
	for target, want := range map[string][]string{
		"/marks":                            {"deploy v2.3.1", "deploy now"},
		"/marks?limit=1":                    {"deploy now"},
		"/marks?until=2026-11-21T11:31:00Z": {"deploy v2.3.1"},
		"/marks?since=-10m&until=-5m":       nil,
		"/series?from=-2h":                  {"deploy v2.3.1", "deploy now"},
	} {
		if diff := cmp.Diff(want, texts(t, get(t, h, target).Body.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	id := fmt.Sprint(got["id"])
	if got := send(t, h, http.MethodDelete, "/marks/"+id, "").Code; got != http.StatusNoContent {
		t.Errorf("delete = %d, want 204", got)
	}
	if got := send(t, h, http.MethodDelete, "/marks/"+id, "").Code; got != http.StatusNotFound {
		t.Errorf("delete again = %d, want 404", got)
	}
	if diff := cmp.Diff([]string{"deploy now"}, texts(t, get(t, h, "/marks").Body.String())); diff != "" {
		t.Errorf("marks after the delete (-want +got):\n%s", diff)
	}
}

func TestMarksThatCannotBeSet(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t))
	for name, tt := range map[string]struct{ body, detail string }{
		"no text":       {`{}`, "text"},
		"long text":     {`{"text":"` + strings.Repeat("é", 101) + `"}`, "expected length <= 100"},
		"spaces":        {`{"text":"  "}`, "Field text must not be empty"},
		"control":       {`{"text":"a\u0000b"}`, "Field text"},
		"no URL":        {`{"text":"a","link":"javascript:alert(1)"}`, "Field link"},
		"no time":       {`{"text":"a","at":"noon"}`, "Field at"},
		"in the future": {`{"text":"a","at":"2026-11-21T14:00:00Z"}`, "Field at"},
		"unknown field": {`{"text":"a","colour":"red"}`, "unexpected property"},
	} {
		w := send(t, h, http.MethodPost, "/marks", tt.body)
		if detail, _ := decode(t, w.Body.String())["detail"].(string); w.Code != http.StatusBadRequest || !strings.Contains(detail, tt.detail) {
			t.Errorf("%s = %d %s, want 400 with %q", name, w.Code, detail, tt.detail)
		}
	}
}

func TestRestartsOfWorkersAreMarksThatAreNotStored(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	beat := func(worker string, pid int64, d time.Duration) state.Event {
		return state.Event{Kind: state.WorkerHeartbeat, Hostname: worker, PID: pid, Clock: pid, Micros: start + d.Microseconds(), Present: state.FieldClock}
	}
	for _, e := range []state.Event{beat("celery@w1", 111, 5*time.Hour), beat(oddName, 222, 5*time.Hour+30*time.Second)} {
		b.Apply(&e)
	}
	h := atNoon(b)
	if diff := cmp.Diff([]string{"restart 2 workers restarted"}, texts(t, get(t, h, "/marks").Body.String())); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func TestFailuresSayWhichMarkCameBefore(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t)) // in which a task fails at seven seconds after midnight
	send(t, h, http.MethodPost, "/marks", `{"text":"v1","at":"2026-11-20T23:48:07Z"}`)
	send(t, h, http.MethodPost, "/marks", `{"text":"v2","at":"2026-11-21T00:00:08Z"}`)
	f := decode(t, get(t, h, "/failures/"+failed()).Body.String())
	after, _ := f["first_after"].([]any)
	if len(after) != 1 || after[0].(map[string]any)["text"] != "v1" {
		t.Errorf("first seen after %v, want v1 alone", after)
	}
}
