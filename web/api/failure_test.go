package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/web/api"
)

// failed is the group of the task that fails in newBackend.
func failed() string {
	return fingerprint.Of("ValueError('x')", "Traceback…").ID("shop.pay").String()
}

// atNoon serves b half a day after its events.
func atNoon(b api.Backend) http.Handler {
	return newAPI(api.Options{Backend: b, Now: func() time.Time { return time.UnixMicro(start).Add(12 * time.Hour).UTC() }})
}

func post(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, nil))
	check(t, w)
	return w
}

func TestFailures(t *testing.T) {
	t.Parallel()
	trend := make([]any, 24)
	for i := range trend {
		trend[i] = json.Number("0")
	}
	trend[11] = json.Number("1")
	want := map[string]any{
		"items": []any{map[string]any{
			"id": failed(), "name": "shop.pay", "type": "ValueError", "message": "x", "place": nil,
			"example": "ValueError('x')", "task_id": failedID, "status": "open",
			"count": json.Number("1"), "exact": true, "last_hour": json.Number("0"), "trend": trend, "in_span": nil,
			"first_at": "2026-11-21T00:00:07.000000Z", "last_at": "2026-11-21T00:00:07.000000Z", "resolved_at": nil,
			"first_after": []any{},
			"note":        nil, "noted_by": nil, "noted_at": nil, "assignee": nil,
		}},
		"next": nil, "prev": nil, "total": json.Number("1"),
	}
	h := atNoon(newBackend(t))
	if diff := cmp.Diff(want, any(decode(t, get(t, h, "/failures").Body.String()))); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	one := want["items"].([]any)[0]
	if diff := cmp.Diff(one, any(decode(t, get(t, h, "/failures/"+failed()).Body.String()))); diff != "" {
		t.Errorf("one of them (-want +got):\n%s", diff)
	}
	for span, want := range map[string]json.Number{
		"since=2026-11-21T00:00:07Z&until=2026-11-21T00:00:08Z": "1", "since=2026-11-21T00:00:08Z&until=2026-11-21T01:00:00Z": "0",
	} {
		list := decode(t, get(t, h, "/failures?"+span).Body.String())
		if list["total"] != want {
			t.Errorf("failures of %s = %v, want %s", span, list["total"], want)
		}
		if items := list["items"].([]any); len(items) == 1 && items[0].(map[string]any)["in_span"] != want {
			t.Errorf("failures of %s in it = %v", span, items[0])
		}
		group := decode(t, get(t, h, "/failures/"+failed()+"?"+span).Body.String())
		sum := int64(0)
		for _, n := range group["trend"].([]any) {
			one, _ := n.(json.Number).Int64()
			sum += one
		}
		if group["in_span"] != want || json.Number(strconv.FormatInt(sum, 10)) != want || group["count"] != json.Number("1") {
			t.Errorf("the group in %s = %v, want %s in it, of 1", span, group, want)
		}
	}
	if got := get(t, h, "/failures/"+failed()+"?until=2026-11-21T00:00:08Z").Code; got != http.StatusBadRequest {
		t.Errorf("half a span of a group gets %d, want 400", got)
	}
	if got := get(t, h, "/types?since=2026-11-21T00:00:08Z").Code; got != http.StatusBadRequest {
		t.Errorf("half a span gets %d, want 400", got)
	}
}

func TestFailuresAreResolvedAndReopened(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	h := atNoon(b)
	status := func(w *httptest.ResponseRecorder) any { return decode(t, w.Body.String())["status"] }
	listed := func(show string) int {
		return len(decode(t, get(t, h, "/failures?show="+show).Body.String())["items"].([]any))
	}
	if got := status(post(t, h, "/failures/"+failed()+"/resolve")); got != "resolved" {
		t.Errorf("status = %v, want resolved", got)
	}
	if listed("open") != 0 || listed("resolved") != 1 || listed("all") != 1 {
		t.Errorf("open, resolved, all = %d, %d, %d, want 0, 1, 1", listed("open"), listed("resolved"), listed("all"))
	}
	b.Apply(&state.Event{
		Kind: state.TaskReceived, Hostname: "celery@w1", PID: 11, Clock: 900, Micros: start + 13*3600e6, ID: "again", Name: "shop.pay",
		Present: state.FieldName | state.FieldClock,
	})
	b.Apply(&state.Event{
		Kind: state.TaskFailed, Hostname: "celery@w1", PID: 11, Clock: 901, Micros: start + 13*3600e6, ID: "again",
		Exception: "ValueError('x')", Traceback: "Traceback…", Present: state.FieldException | state.FieldTraceback | state.FieldClock,
	})
	if got := status(get(t, h, "/failures/"+failed())); got != "recurred" {
		t.Errorf("status after another failure = %v, want came_back", got)
	}
	if got := status(post(t, h, "/failures/"+failed()+"/reopen")); got != "open" {
		t.Errorf("status = %v, want open", got)
	}
}

func TestFailuresThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t))
	for _, id := range []string{"0123456789abcdef", "x", strings.ToUpper(failed())} {
		for _, w := range []*httptest.ResponseRecorder{
			get(t, h, "/failures/"+id), post(t, h, "/failures/"+id+"/resolve"), post(t, h, "/failures/"+id+"/reopen"),
		} {
			if w.Code != http.StatusNotFound {
				t.Errorf("group %s answers %d %s, want 404", id, w.Code, w.Body)
			}
		}
	}
	for target, parameter := range map[string]string{
		"/failures?show=new": "show", "/failures?cursor=x": "cursor", "/failures?q=x": "q", "/failures/" + failed() + "?x=1": "x",
	} {
		w := get(t, h, target)
		if got := decode(t, w.Body.String())["parameter"]; w.Code != http.StatusBadRequest || got != parameter {
			t.Errorf("%s answers %d about %v, want 400 about %s", target, w.Code, got, parameter)
		}
	}
	if w := get(t, h, "/failures/"+failed()+"/resolve"); w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
		t.Errorf("resolving by GET answers %d", w.Code)
	}
}

func TestFailuresAreNotedAndAssigned(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t))
	note := func(body string) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/failures/"+failed()+"/note", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		check(t, w)
		return w
	}
	got := decode(t, note(`{"note": "Ticket 7", "assignee": "bob"}`).Body.String())
	if got["note"] != "Ticket 7" || got["assignee"] != "bob" || got["noted_at"] == nil || got["noted_by"] != "ada" {
		t.Errorf("group = %v", got)
	}
	for target, want := range map[string]int{"/failures?assignee=bob": 1, "/failures?assignee=ann": 0} {
		if page := decode(t, get(t, h, target).Body.String()); len(page["items"].([]any)) != want {
			t.Errorf("%s lists %v, want %d", target, page["items"], want)
		}
	}
	if got := decode(t, note(`{"assignee": ""}`).Body.String()); got["note"] != "Ticket 7" || got["assignee"] != nil {
		t.Errorf("group of nobody = %v", got)
	}
	for body, want := range map[string]int{
		`{}`: http.StatusBadRequest, `{"note": "` + strings.Repeat("ü", 1_500) + `"}`: http.StatusBadRequest, `{"assignee": "a\nb"}`: http.StatusBadRequest,
		`{"note": 7}`: http.StatusUnprocessableEntity,
	} {
		if w := note(body); w.Code != want && w.Code != http.StatusBadRequest {
			t.Errorf("%.40s answers %d, want %d", body, w.Code, want)
		}
	}
}

func TestFailuresComeInPages(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for i, name := range []string{"a", "b", "c"} {
		micros := start + int64(i)*1e6
		b.Apply(&state.Event{
			Kind: state.TaskReceived, Hostname: "celery@w1", PID: 11, Clock: int64(100 + 2*i), Micros: micros, ID: name, Name: name,
			Present: state.FieldName | state.FieldClock,
		})
		b.Apply(&state.Event{
			Kind: state.TaskFailed, Hostname: "celery@w1", PID: 11, Clock: int64(101 + 2*i), Micros: micros, ID: name,
			Exception: "E()", Present: state.FieldException | state.FieldClock,
		})
	}
	h := atNoon(b)
	var got []string
	for target := "/failures?limit=1"; target != ""; {
		page := decode(t, get(t, h, target).Body.String())
		for _, item := range page["items"].([]any) {
			got = append(got, item.(map[string]any)["name"].(string))
		}
		if total := page["total"]; total != json.Number("4") {
			t.Errorf("total = %v, want 4", total)
		}
		target = ""
		if next, ok := page["next"].(string); ok {
			target = "/failures?limit=1&cursor=" + next
		}
	}
	if diff := cmp.Diff([]string{"shop.pay", "c", "b", "a"}, got); diff != "" {
		t.Errorf("groups on all pages (-want +got):\n%s", diff)
	}
}

// broken is a backend whose store cannot be used.
type broken struct{ *backend }

func (broken) History() view.History { return brokenStore{} }

type brokenStore struct{ view.History }

var errBroken = errors.New("disk I/O error at /secret")

func (brokenStore) FailureGroups(context.Context, history.FailureRequest) (history.FailurePage, error) {
	return history.FailurePage{}, errBroken
}

func (brokenStore) FailureGroup(context.Context, fingerprint.ID, time.Time) (history.FailureGroup, error) {
	return history.FailureGroup{}, errBroken
}

func (brokenStore) ResolveFailureGroup(context.Context, fingerprint.ID, time.Time) error {
	return errBroken
}

func TestFailuresOfABrokenStore(t *testing.T) {
	t.Parallel()
	h := atNoon(broken{newBackend(t)})
	for _, w := range []*httptest.ResponseRecorder{
		get(t, h, "/failures"), get(t, h, "/failures/"+failed()),
		post(t, h, "/failures/"+failed()+"/resolve"), post(t, h, "/failures/"+failed()+"/reopen"),
	} {
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("answer = %d %s, want 503 without the cause", w.Code, w.Body)
		}
	}
}
