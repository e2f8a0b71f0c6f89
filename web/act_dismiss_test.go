package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/web"
)

// abandoned is a dashboard of three tasks: one that was lost when its worker's process was replaced, one that had ended
// before, and one that waits.
func abandoned(t *testing.T, readOnly bool) http.Handler {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	b := inproc.New(inproc.Options{})
	m, err := ingest.New(ingest.Options{Broker: b, Store: db})
	if err != nil {
		t.Fatal(err)
	}
	r, err := view.New(m, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := command.New(command.Options{Client: controlClient(t, b), Outbox: db, Tasks: r, Dismisser: m, ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(web.Options{
		Backend: r, Commands: ops, ReadOnly: readOnly, Prefix: "/ops", Identify: func(*http.Request) string { return "ada" },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return m.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Errorf("run: %v", err)
		}
		_ = db.Close()
	})
	for i, e := range []string{
		`"worker-online","pid":7,"hostname":"celery@a","freq":2`,
		`"task-sent","pid":1,"hostname":"gen1@client","uuid":"waits","name":"mail.send","queue":"celery"`,
		`"task-received","pid":7,"hostname":"celery@a","uuid":"lost","name":"mail.send"`,
		`"task-started","pid":7,"hostname":"celery@a","uuid":"lost"`,
		`"task-received","pid":7,"hostname":"celery@a","uuid":"ended","name":"mail.send"`,
		`"task-succeeded","pid":7,"hostname":"celery@a","uuid":"ended","result":"1","runtime":1`,
		`"worker-online","pid":8,"hostname":"celery@a","freq":2`,
	} {
		body := fmt.Appendf(nil, `{"type":%s,"clock":%d,"timestamp":%d}`, e, i+1, time.Now().Unix()-20+int64(i))
		if err := b.Publish(t.Context(), broker.Message{Body: body, ContentType: "application/json"}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.After(timeout)
	for {
		changed := m.Changed()
		task, _ := r.Task(ctx, "lost")
		if task.Lost != nil {
			return h
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("the task is not lost: %+v", task)
		}
	}
}

// listed are the ids of the tasks that a query finds.
func listed(t *testing.T, h http.Handler, q string) []string {
	t.Helper()
	var page struct{ Items []struct{ ID string } }
	w := visit(t, h, "/ops/api/v1/tasks?q="+url.QueryEscape(q))
	if err := json.Unmarshal(w.Body.Bytes(), &page); w.Code != http.StatusOK || err != nil {
		t.Fatalf("tasks = %d %s, %v", w.Code, w.Body, err)
	}
	ids := []string{}
	for _, item := range page.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

// counted are how many tasks run, are lost, and are dismissed.
func counted(t *testing.T, h http.Handler) [3]int {
	t.Helper()
	var v struct {
		Counts struct{ Running, Lost, Dismissed int }
	}
	w := visit(t, h, "/ops/api/v1/overview")
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		t.Fatalf("overview = %d %s, %v", w.Code, w.Body, err)
	}
	return [3]int{v.Counts.Running, v.Counts.Lost, v.Counts.Dismissed}
}

// audited are who did what with what, newest first.
func audited(t *testing.T, h http.Handler) []string {
	t.Helper()
	var page struct {
		Items []struct {
			Actor, Action, Target, Endpoint string
		}
	}
	w := visit(t, h, "/ops/api/v1/audit")
	if err := json.Unmarshal(w.Body.Bytes(), &page); w.Code != http.StatusOK || err != nil {
		t.Fatalf("audit log = %d %s, %v", w.Code, w.Body, err)
	}
	list := []string{}
	for _, r := range page.Items {
		list = append(list, strings.Join([]string{r.Actor, r.Action, r.Target, r.Endpoint}, ", "))
	}
	return list
}

func TestALostTaskIsDismissedAndReinstated(t *testing.T) {
	t.Parallel()
	byPage := func(t *testing.T, h http.Handler, action string) string {
		form := visit(t, h, "/ops/act/dismiss?id=lost&action="+action)
		send := hiddenFields(form.Body.String(), "/ops/act/dismiss")
		if status, location, page := post(t, h, "/ops/act/dismiss", send); status != http.StatusSeeOther || location != "/ops/tasks/lost" {
			t.Fatalf("the form leads with %d to %q:\n%s", status, location, page)
		}
		return "/act/dismiss"
	}
	byAPI := func(t *testing.T, h http.Handler, action string) string {
		w := request(t, h, http.MethodPost, "/ops/api/v1/"+action+"/lost", "")
		var task struct {
			Dismissed *struct{ Reason, Evidence string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &task); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s = %d %s, %v", action, w.Code, w.Body, err)
		}
		if dismissed := action == "dismiss"; dismissed != (task.Dismissed != nil) || dismissed && task.Dismissed.Evidence != "ada" {
			t.Errorf("%s answers with %s", action, w.Body)
		}
		return "API POST /api/v1/" + action + "/lost"
	}
	for name, act := range map[string]func(*testing.T, http.Handler, string) string{"page": byPage, "API": byAPI} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := abandoned(t, false)
			check := func(when string, lost, dismissed []string, counts [3]int, offered string) {
				t.Helper()
				got := []any{listed(t, h, "is:lost"), listed(t, h, "is:dismissed"), counted(t, h)}
				if diff := cmp.Diff([]any{lost, dismissed, counts}, got); diff != "" {
					t.Errorf("lost, dismissed and counts %s (-want +got):\n%s", when, diff)
				}
				page := visit(t, h, "/ops/tasks/lost").Body.String()
				want := []string{"/ops/act/dismiss?action=" + offered + "&id=lost"}
				if diff := cmp.Diff(want, find(`href="(/ops/act/dismiss[^"]*)"`, page)); diff != "" {
					t.Errorf("offers %s (-want +got):\n%s", when, diff)
				}
			}
			check("at first", []string{"lost"}, []string{}, [3]int{0, 1, 0}, "dismiss")
			from := act(t, h, "dismiss")
			check("when dismissed", []string{}, []string{"lost"}, [3]int{0, 0, 1}, "reinstate")
			back := act(t, h, "reinstate")
			check("when reinstated", []string{"lost"}, []string{}, [3]int{0, 1, 0}, "dismiss")
			want := []string{"ada, reinstate, task lost, " + back, "ada, dismiss, task lost, " + from}
			if diff := cmp.Diff(want, audited(t, h)); diff != "" {
				t.Errorf("audit log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyUnfinishedTasksAreDismissed(t *testing.T) {
	t.Parallel()
	h := abandoned(t, false)
	for id, want := range map[string]struct {
		status int
		why    string
	}{
		"ended": {http.StatusConflict, "The task has ended: only an unfinished one can be dismissed."},
		"none":  {http.StatusNotFound, "The task is not retained."},
	} {
		for _, action := range []string{"dismiss", "reinstate"} {
			w := request(t, h, http.MethodPost, "/ops/api/v1/"+action+"/"+id, "")
			if w.Code != want.status || !strings.Contains(w.Body.String(), want.why) {
				t.Errorf("%s %s = %d %s, want %d %s", action, id, w.Code, w.Body, want.status, want.why)
			}
			form := url.Values{"id": {id}, "action": {action}}
			asked := visit(t, h, "/ops/act/dismiss?"+form.Encode())
			status, _, page := post(t, h, "/ops/act/dismiss", form)
			for at, got := range map[int]string{asked.Code: asked.Body.String(), status: page} {
				if at != want.status || !strings.Contains(got, want.why) || hiddenFields(got, "/ops/act/dismiss").Has("token") {
					t.Errorf("form to %s %s = %d, want %d %s:\n%s", action, id, at, want.status, want.why, got)
				}
			}
		}
	}
	if page := visit(t, h, "/ops/tasks/ended").Body.String(); strings.Contains(page, "/act/dismiss") {
		t.Error("a task that has ended can be dismissed")
	}
	if form := visit(t, h, "/ops/act/dismiss?id=waits&action=dismiss").Body.String(); !strings.Contains(form, "Nothing suggests that the task is lost") {
		t.Errorf("no warning before a task is dismissed that is not lost:\n%s", form)
	}
	if w := visit(t, h, "/ops/act/dismiss?id=lost&action=remove"); w.Code != http.StatusBadRequest {
		t.Errorf("form for another action = %d, want 400", w.Code)
	}
	if got := audited(t, h); len(got) > 0 {
		t.Errorf("audit log = %v, want nothing of what was refused", got)
	}
}

func TestReadOnlyDismissesNothing(t *testing.T) {
	t.Parallel()
	h := abandoned(t, true)
	if page := visit(t, h, "/ops/tasks/lost").Body.String(); strings.Contains(page, "/act/") {
		t.Error("the page of a task offers an action")
	}
	for _, action := range []string{"dismiss", "reinstate"} {
		form := url.Values{"id": {"lost"}, "action": {action}}
		status, _, _ := post(t, h, "/ops/act/dismiss", form)
		for what, got := range map[string]int{
			"form":      visit(t, h, "/ops/act/dismiss?"+form.Encode()).Code,
			"sent form": status,
			"API":       request(t, h, http.MethodPost, "/ops/api/v1/"+action+"/lost", "").Code,
		} {
			if got != http.StatusNotFound && got != http.StatusMethodNotAllowed {
				t.Errorf("%s to %s = %d, want 404 or 405", what, action, got)
			}
		}
	}
	if diff := cmp.Diff([]string{"lost"}, listed(t, h, "is:lost")); diff != "" {
		t.Errorf("lost tasks (-want +got):\n%s", diff)
	}
}
