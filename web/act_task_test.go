package web_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// painting is a cluster with a task that waits, one that runs, and one whose arguments were cut.
func newNamedBackend(t *testing.T) *backend {
	t.Helper()
	b := newBackend(t, state.Options{})
	b.happen(state.TaskReceived, "waits", 100)
	b.Apply(&state.Event{
		Kind: state.TaskReceived, Hostname: "celery@a", PID: 40, ID: "cut", Name: "mail.send", Args: "('ann@example.org', 'Dear Ann, ...)",
		Kwargs: "{}", Clock: 200, Micros: noon + 200e6, ReceivedMicros: noon,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldArgs | state.FieldKwargs,
	})
	b.happen(state.TaskFailed, "cut", 201)
	return b
}

func TestRetryAsItWas(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	page := visit(t, h, "/ops/act/task?action=retry&id=task-01").Body.String()
	if !strings.Contains(page, "Run billing.charge again") || !strings.Contains(page, "[1]") || !strings.Contains(page, "from the event") {
		t.Fatalf("preview of a retry:\n%s", page)
	}
	form := hiddenFields(page, "/ops/act/task")
	for range 2 {
		if status, location, page := post(t, h, "/ops/act/task", form); status != http.StatusSeeOther || location != "/ops/outbox/1" {
			t.Fatalf("retry leads with %d to %q:\n%s", status, location, page)
		}
	}
	list := s.published(t, 1)
	if len(list) != 1 || list[0].Name != "billing.charge" || string(list[0].Args) != "[1]" || list[0].ID == "task-01" {
		t.Errorf("published = %+v, want billing.charge(1) once with another id", list)
	}
}

func TestRetryDoesNotGuess(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	w := visit(t, h, "/ops/act/task?action=retry&id=cut")
	if got, want := w.Header().Get("Location"), "/ops/act/publish?retry_of=cut"; w.Code != http.StatusSeeOther || got != want {
		t.Fatalf("retry of cut arguments leads with %d to %q, want %q", w.Code, got, want)
	}
	page := visit(t, h, "/ops/act/publish?retry_of=cut").Body.String()
	for _, want := range []string{"not known in full", `spellcheck="false" aria-describedby="field-args-hint" required></textarea>`, "possibly truncated", "Dear Ann, ..."} {
		if !strings.Contains(page, want) {
			t.Errorf("form has no %q:\n%s", want, page)
		}
	}
	form := url.Values{"retry_of": {"cut"}, "name": {"mail.send"}, "queue": {"celery"}, "args": {""}, "kwargs": {"{}"}}
	if status, _, page := post(t, h, "/ops/act/publish", form); status != http.StatusBadRequest || !strings.Contains(page, "not guessed") {
		t.Errorf("retry without arguments = %d, want 400:\n%s", status, page)
	}
	form.Set("args", `["ann@example.org", "Dear Ann, hello"]`)
	if status, _, page := post(t, h, "/ops/act/publish", form); status != http.StatusSeeOther {
		t.Fatalf("retry with arguments = %d:\n%s", status, page)
	}
	if list := s.published(t, 1); len(list) != 1 || list[0].ParentID != "cut" {
		t.Errorf("published = %+v, want a child of cut", list)
	}
}

func TestRevokeIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := newNamedBackend(t)
	h, s := acting(t, b, web.Options{})
	page := visit(t, h, "/ops/act/task?action=revoke&id=waits").Body.String()
	if !strings.Contains(page, "Revoke 1 task") || !strings.Contains(page, "billing.charge (1,)") {
		t.Fatalf("preview of a revocation:\n%s", page)
	}
	if got := s.requests(); len(got) != 0 {
		t.Errorf("workers were told %v by a preview", got)
	}
	form := hiddenFields(page, "/ops/act/task")
	for range 2 {
		if status, location, page := post(t, h, "/ops/act/task", form); status != http.StatusSeeOther || location != "/ops/outbox/1" {
			t.Fatalf("revocation leads with %d to %q:\n%s", status, location, page)
		}
	}
	if _, err := s.commands.Relay.Wait(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	want := []string{`celery@a revoke ["waits"]`, `celery@b/1%20ü revoke ["waits"]`}
	if diff := cmp.Diff(want, s.requests()); diff != "" {
		t.Errorf("what workers were told (-want +got):\n%s", diff)
	}
	about := visit(t, h, "/ops/tasks/waits").Body.String()
	for _, want := range []string{"2 of 2", "flagged as revoked", `href="/ops/outbox/1"`} {
		if !strings.Contains(about, want) {
			t.Errorf("page of the task has no %q", want)
		}
	}
	if strings.Contains(about, "effect, consistent") {
		t.Error("the diagram shows an effect before there is one")
	}
	revoked := taskEvent(state.TaskRevoked, "waits", 500)
	revoked.ReceivedMicros = time.Now().UnixMicro()
	revoked.Micros = revoked.ReceivedMicros + time.Hour.Microseconds() // its clock is ahead
	b.Apply(revoked)
	if about = visit(t, h, "/ops/tasks/waits").Body.String(); !strings.Contains(about, "revoked before it began") || !strings.Contains(about, "effect, consistent") {
		t.Error("the diagram does not lead from the command to its effect")
	}
}

func TestPreflightOfMany(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	tests := map[string]struct {
		target string
		status int
		want   []string
	}{
		"revoke by query":  {"?action=revoke&q=" + url.QueryEscape("name:billing.*"), 200, []string{"Already finished.", "Already running: only terminate ends it.", "31 tasks matched", "Revoke this task"}},
		"retry all":        {"?action=retry&q=", 200, []string{"Retry 20 tasks", "Arguments cut short, or not known for certain.", "Not finished."}},
		"terminate asks":   {"?action=terminate&id=task-02&id=task-05", 200, []string{`name="signal"`, "SIGKILL", "Continue"}},
		"terminate":        {"?action=terminate&check=1&signal=SIGKILL&id=task-02&id=task-05", 200, []string{"Terminate 2 tasks with SIGKILL", "Type <code>terminate</code> to confirm"}},
		"capped":           {"?action=retry&cap=3&q=", 200, []string{"the newest 3", "Retry 3 tasks"}},
		"nothing left":     {"?action=revoke&id=task-00", 200, []string{"Already finished.", "Nothing to revoke", "Back"}},
		"no such task":     {"?action=revoke&id=nope&id=nope2", 200, []string{"No such task."}},
		"nothing selected": {"?action=revoke", 400, []string{"No task is selected."}},
		"no such action":   {"?action=explode&id=task-00", 400, []string{"Tasks can be revoked, terminated or retried."}},
		"query is wrong":   {"?action=revoke&q=(", 400, []string{"Invalid query: "}},
		"cap is wrong":     {"?action=retry&q=&cap=0", 400, []string{"a number from 1 to 10000"}},
		"change":           {"?action=retry&q=&cap=3&change=1", 200, []string{`name="cap" value="3"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, "/ops/act/task"+tt.target)
			page := w.Body.String()
			if w.Code != tt.status {
				t.Errorf("answer = %d, want %d", w.Code, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(page, want) {
					t.Errorf("page has no %q:\n%s", want, page)
				}
			}
			if name == "nothing left" && (strings.Contains(page, `action="/ops/act/task"`) || strings.Contains(page, "Warning:")) {
				t.Error("the page offers to do nothing")
			}
		})
	}
	t.Cleanup(func() {
		if got := s.requests(); len(got) != 0 {
			t.Errorf("workers were told %v by previews", got)
		}
	})
}

func TestTerminateWantsTheWord(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	page := visit(t, h, "/ops/act/task?action=terminate&check=1&signal=SIGKILL&id=task-02&id=task-05").Body.String()
	form := hiddenFields(page, "/ops/act/task")
	for _, typed := range []string{"", "Terminate!"} {
		form.Set("confirm", typed)
		status, _, page := post(t, h, "/ops/act/task", form)
		if status != http.StatusBadRequest || !strings.Contains(page, "ot confirmed: type “terminate”") || !strings.Contains(page, "Terminate 2 tasks") {
			t.Errorf("terminate with %q typed = %d, want 400 and the preview again:\n%s", typed, status, page)
		}
	}
	if got := s.requests(); len(got) != 0 {
		t.Fatalf("workers were told %v without the word", got)
	}
	form.Set("confirm", " terminate ")
	if status, location, page := post(t, h, "/ops/act/task", form); status != http.StatusSeeOther {
		t.Fatalf("terminate leads with %d to %q:\n%s", status, location, page)
	}
	if _, err := s.commands.Relay.Wait(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	if got := s.requests(); len(got) != 2 || !slices.ContainsFunc(got, func(o string) bool { return strings.Contains(o, `["task-02","task-05"]`) }) {
		t.Errorf("workers were told %v, want both ids", got)
	}
}

func TestTaskPagesOfferWhatCanBeDone(t *testing.T) {
	t.Parallel()
	h, _ := acting(t, newNamedBackend(t), web.Options{})
	tests := map[string]struct{ yes, no []string }{
		"waits":   {[]string{"Revoke"}, []string{"Terminate: Not running. Retry: Not finished."}},
		"task-02": {[]string{"Terminate"}, []string{"Revoke: Already running: only terminate ends it. Retry: Not finished."}},
		"task-00": {[]string{"Retry"}, []string{"Revoke, terminate: Already finished."}},
		"task-01": {[]string{"Retry"}, []string{"Revoke, terminate: Already finished."}},
	}
	for id, tt := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			page := visit(t, h, "/ops/tasks/"+id).Body.String()
			for _, title := range tt.yes {
				want := `href="/ops/act/task?action=` + strings.ToLower(title) + "&amp;id=" + id + `"`
				if !strings.Contains(page, want) {
					t.Errorf("page has no link %s", want)
				}
			}
			for _, why := range tt.no {
				if !strings.Contains(page, why) {
					t.Errorf("page does not say %q", why)
				}
			}
			if got, want := strings.Count(page, "/ops/act/task?"), len(tt.yes); got != want {
				t.Errorf("page has %d links to actions, want %d", got, want)
			}
			if !strings.Contains(page, "/ops/act/publish?retry_of="+id) {
				t.Error("page has no link to edit it")
			}
		})
	}
}

func TestReadOnlyActsOnNoTask(t *testing.T) {
	t.Parallel()
	h, _ := acting(t, newNamedBackend(t), web.Options{ReadOnly: true})
	for _, target := range []string{"/ops/tasks", "/ops/tasks/waits", "/ops/tasks/task-01"} {
		page := visit(t, h, target).Body.String()
		for _, never := range []string{"/act/", "data-select", `type="checkbox"`} {
			if strings.Contains(page, never) {
				t.Errorf("%s has %s", target, never)
			}
		}
	}
	for _, target := range []string{"/ops/act/task?action=revoke&id=waits", "/ops/act/publish"} {
		if got := visit(t, h, target).Code; got != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", target, got)
		}
		if status, _, _ := post(t, h, target, url.Values{"id": {"waits"}}); status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s = %d, want 404", target, status)
		}
	}
}

func TestPreviewsSayThatTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	const target, away = "/ops/act/task?action=revoke&id=waits", "The broker is unavailable: the command waits"
	if page := visit(t, h, target).Body.String(); strings.Contains(page, away) {
		t.Error("the broker is said to be away while it is there")
	}
	s.Refuse(errors.New("refused"))
	s.Fail(errors.New("gone"))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); s.commands.Client.Connected(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the loss of the line goes unseen")
		}
	}
	page := visit(t, h, target).Body.String()
	if !strings.Contains(page, away) {
		t.Errorf("page does not say that nothing can be sent:\n%s", page)
	}
	if status, location, _ := post(t, h, "/ops/act/task", hiddenFields(page, "/ops/act/task")); status != http.StatusSeeOther || location != "/ops/outbox/1" {
		t.Errorf("what cannot be sent yet leads with %d to %q, want it in the outbox", status, location)
	}
}
