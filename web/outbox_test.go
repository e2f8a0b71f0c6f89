package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// paper is a dashboard whose commands are written down and sent by nobody.
type outboxWeb struct {
	http.Handler
	db *sqlite.DB
}

func newOutboxWeb(t *testing.T, readOnly bool) *outboxWeb {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := storeBackend{newBackend(t, state.Options{}), db}
	ops, err := command.New(command.Options{Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: db, Tasks: b, ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	h, err := web.New(web.Options{Backend: b, Commands: ops, ReadOnly: readOnly, Prefix: "/ops", Identify: func(*http.Request) string { return "ada" }})
	if err != nil {
		t.Fatal(err)
	}
	return &outboxWeb{h, db}
}

// enqueue enqueues a request of n commands and returns their IDs.
func (p *outboxWeb) enqueue(t *testing.T, n int) []int64 {
	t.Helper()
	o := history.CommandRequest{Audit: history.AuditRecord{At: time.UnixMicro(noon), Actor: "bob", Action: "revoke", Target: "x"}}
	for i := range n {
		o.Commands = append(o.Commands, history.Command{
			Schema: history.CommandSchema, Kind: "control", Group: fmt.Sprint("g", i), Target: "celery@a", Actor: "bob",
			Summary: fmt.Sprintf("Revoke task %d", i), Payload: []byte(`{}`), CreatedAt: time.UnixMicro(noon), DueAt: time.UnixMicro(noon),
		})
	}
	commands, _, err := p.db.Enqueue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, n)
	for i, c := range commands {
		ids[i] = c.ID
	}
	return ids
}

// become gives commands a state.
func (p *outboxWeb) become(t *testing.T, s history.CommandState, ids ...int64) {
	t.Helper()
	now := time.UnixMicro(noon).Add(time.Second)
	if _, err := p.db.Claim(t.Context(), "relay", now, 500, 500); err != nil {
		t.Fatal(err)
	}
	var outcomes []history.Outcome
	for _, id := range ids {
		outcomes = append(outcomes, history.Outcome{ID: id, State: s, Error: "no such queue: mail", Attempts: 8})
	}
	if err := p.db.RecordOutcomes(t.Context(), "relay", now, outcomes); err != nil {
		t.Fatal(err)
	}
}

// states are those of all commands, by id.
func (p *outboxWeb) states(t *testing.T) string {
	t.Helper()
	list, _, err := p.db.Commands(t.Context(), history.CommandFilter{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for i := range list {
		states = append(states, string(list[len(list)-1-i].State))
	}
	return strings.Join(states, " ")
}

func TestOutboxPagesAnswer(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	p.enqueue(t, 120)
	for target, want := range map[string]int{
		"/ops/outbox": 200, "/ops/outbox?state=pending&kind=control": 200, "/ops/outbox?state=dead,done": 200,
		"/ops/outbox?worker=celery@a&actor=bob&request=1": 200, "/ops/outbox?state=": 303, "/ops/outbox?state=lost": 400,
		"/ops/outbox?q=x": 200, "/ops/outbox?cursor=50": 200, "/ops/outbox?cursor=x": 400,
		"/ops/outbox/1": 200, "/ops/outbox/1?cursor=51": 200, "/ops/outbox/1?cursor=x": 404, "/ops/outbox/2": 303, "/ops/outbox/121": 404, "/ops/outbox/x": 404,
		"/ops/outbox/-1": 404, "/ops/outbox/99999999999999999999": 404, "/ops/outbox/1/2": 404,
		"/ops/outbox/audit": 200, "/ops/outbox/audit?cursor=1": 200, "/ops/outbox/audit?cursor=x": 400, "/ops/outbox/audit?state=x": 200,
		"/ops/queues": 200, "/ops/queues?hidden=true": 200, "/ops/queues?sort=-failed": 200, "/ops/queues/none": 404, "/ops/queues/": 308,
		"/ops/act/outbox": 400, "/ops/act/outbox?action=discard": 409, "/ops/act/outbox?action=discard&id=1": 200,
		"/ops/act/outbox?action=requeue&id=1": 409, "/ops/act/outbox?action=discard&id=x": 400, "/ops/act/outbox?action=discard&request=x": 400,
		"/ops/act/outbox?action=discard&request=1": 200, "/ops/act/outbox?action=requeue&all=dead": 409, "/ops/act/purge": 400,
	} {
		if got := visit(t, p, target); got.Code != want {
			t.Errorf("GET %s = %d, want %d", target, got.Code, want)
		}
	}
}

func TestOutboxIsPaged(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	p.enqueue(t, 120)
	for _, first := range []string{"/ops/outbox?state=pending", "/ops/outbox/1"} {
		seen := map[string]bool{}
		for target := first; target != ""; {
			page := visit(t, p, target).Body.String()
			for _, id := range find(`<tr id="c-(\d+)"`, page) {
				if seen[id] {
					t.Errorf("command %s is on two pages of %s", id, first)
				}
				seen[id] = true
			}
			target = strings.Join(find(`rel="next" href="([^"]+)"`, page), "")
		}
		if len(seen) != 120 {
			t.Errorf("pages of %s have %d commands, want 120", first, len(seen))
		}
	}
	if page := visit(t, p, "/ops/outbox/1").Body.String(); !strings.Contains(page, "0 of 120 finished, 120 pending") {
		t.Errorf("order page does not count its commands")
	}
}

func TestOutboxListsRequestsWithTheirOutcome(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	ids := p.enqueue(t, 45)
	p.become(t, history.CommandDone, ids[:41]...)
	p.become(t, history.CommandDead, ids[41:]...)
	p.enqueue(t, 1)
	page := visit(t, p, "/ops/outbox").Body.String()
	if diff := cmp.Diff([]string{"46", "1"}, find(`<tr id="r-(\d+)"`, page)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if !strings.Contains(page, "Revoke task 0 and 44 more") || !strings.Contains(page, "41 done") || !strings.Contains(page, "4 failed for good") {
		t.Error("the row of a request does not tell of its 45 commands")
	}
}

func TestDeadLettersShowOnEveryPage(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	ids := p.enqueue(t, 3)
	p.become(t, history.CommandDead, ids[:2]...)
	for _, target := range []string{"/ops/", "/ops/tasks", "/ops/outbox", "/ops/nothing"} {
		page := visit(t, p, target).Body.String()
		if !strings.Contains(page, "2 commands could") || !strings.Contains(page, `title="2 dead letters"`) {
			t.Errorf("GET %s does not tell of two dead letters", target)
		}
	}
	page := visit(t, p, "/ops/outbox?state=dead").Body.String()
	if got := find(`form="dead-letters" name="id" value="(\d+)"`, page); !cmp.Equal(got, []string{"2", "1"}) {
		t.Errorf("dead letters that can be chosen = %v, want 2 and 1", got)
	}
}

func TestDeadLettersAreSentAgainOrDiscarded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query       string // of the form
		says, after string
		leads       string
	}{
		"one again":      {"action=requeue&id=1", "Send the dead letter again", "pending dead done pending", "/ops/outbox/1"},
		"chosen away":    {"action=discard&id=1&id=2&id=3", "Discard 2 dead letters", "discarded discarded done pending", "/ops/outbox/1"},
		"all again":      {"action=requeue&all=dead", "Send 2 dead letters again", "pending pending done pending", "/ops/outbox/1"},
		"order's again":  {"action=requeue&request=1", "Send 2 dead letters again", "pending pending done pending", "/ops/outbox/1"},
		"order away":     {"action=discard&request=1", "Discard 2 dead letters", "discarded discarded done pending", "/ops/outbox/1"},
		"waiting one":    {"action=discard&request=4", "Cancel the pending command", "dead dead done discarded", "/ops/outbox/4"},
		"dead and other": {"action=discard&id=1&id=4", "Discard the dead letter and cancel the pending command", "discarded dead done discarded", "/ops/outbox"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newOutboxWeb(t, false)
			ids := p.enqueue(t, 3)
			p.become(t, history.CommandDead, ids[:2]...)
			p.become(t, history.CommandDone, ids[2])
			p.enqueue(t, 1)
			page := visit(t, p, "/ops/act/outbox?"+tc.query).Body.String()
			if !strings.Contains(page, tc.says) {
				t.Errorf("form does not say %q: %s", tc.says, find(`class="summary">([^<]*)`, page))
			}
			if got := p.states(t); got != "dead dead done pending" {
				t.Fatalf("states after the question = %s", got)
			}
			status, location, _ := post(t, p, "/ops/act/outbox", hiddenFields(page, "/ops/act/outbox"))
			if status != http.StatusSeeOther || location != tc.leads {
				t.Errorf("form leads to %d %s, want 303 %s", status, location, tc.leads)
			}
			if got := p.states(t); got != tc.after {
				t.Errorf("states = %s, want %s", got, tc.after)
			}
			page = visit(t, p, "/ops/outbox/audit").Body.String()
			if who := find(`<td class="c-actor" data-label="Who">(\w+)`, page); len(who) != 3 || who[0] != "ada" {
				t.Errorf("audit log names %v, want ada for what she did", who)
			}
			if !strings.Contains(page, "All hashes verified") {
				t.Error("the audit log is not verified")
			}
		})
	}
}

func TestReadOnlyShowsTheOutboxAndChangesNothing(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, true)
	ids := p.enqueue(t, 1)
	p.become(t, history.CommandDead, ids...)
	for _, target := range []string{"/ops/outbox", "/ops/outbox/1", "/ops/outbox/audit", "/ops/outbox?state=dead", "/ops/queues"} {
		w := visit(t, p, target)
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "/ops/act/") {
			t.Errorf("GET %s = %d, want 200 without actions", target, w.Code)
		}
	}
	for _, target := range []string{"/ops/act/outbox", "/ops/act/purge"} {
		if w := visit(t, p, target); w.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", target, w.Code)
		}
		status, _, _ := post(t, p, target, url.Values{"action": {"discard"}, "id": {"1"}, "queue": {"x"}, "confirm": {"x"}})
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			t.Errorf("POST %s = %d, want 404 or 405", target, status)
		}
	}
	if got := p.states(t); got != "dead" {
		t.Errorf("states = %s, want dead", got)
	}
}

func TestOutboxThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	if err := p.db.Close(); err != nil {
		t.Fatal(err)
	}
	if w := visit(t, p, "/ops/outbox"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "The outbox is unavailable") {
		t.Errorf("GET /ops/outbox = %d, want 503 that says so", w.Code)
	}
	for _, target := range []string{"/ops/outbox/1", "/ops/outbox/audit", "/ops/act/outbox?action=discard&id=1"} {
		if w := visit(t, p, target); w.Code != http.StatusServiceUnavailable {
			t.Errorf("GET %s = %d, want 503", target, w.Code)
		}
	}
}

func TestQueueIsPurgedByItsName(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newBackend(t, state.Options{}), web.Options{})
	message, err := celery.Message{ID: "mail-1", Name: "mail.send"}.Publishing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		if err := s.commands.Client.Publish(t.Context(), "celery", message); err != nil {
			t.Fatal(err)
		}
	}
	page := visit(t, h, "/ops/act/purge?queue=celery").Body.String()
	if !strings.Contains(page, "7 waiting messages") || strings.Count(page, `href="/ops/tasks/mail-1"`) != 5 {
		t.Errorf("form does not tell of 7 messages and show 5 of them")
	}
	v := hiddenFields(page, "/ops/act/purge")
	v.Set("confirm", "celary")
	if status, _, page := post(t, h, "/ops/act/purge", v); status != http.StatusBadRequest || !strings.Contains(page, `role="alert"`) {
		t.Errorf("wrong confirmation = %d, want 400 with why", status)
	}
	v.Set("confirm", "celery")
	status, location, page := post(t, h, "/ops/act/purge", v)
	if status != http.StatusSeeOther {
		t.Fatalf("purge = %d %s, want 303", status, page)
	}
	eventually(t, "the order is done", func() bool { return strings.Contains(visit(t, h, location).Body.String(), "state-success") })
	if left := s.published(t, 0); len(left) != 0 {
		t.Errorf("messages left = %d, want none", len(left))
	}
}

func TestQueuePageShowsWhatWaits(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newBackend(t, state.Options{}), web.Options{})
	message, err := celery.Message{ID: "mail-1", Name: "mail.send", Args: []byte(`["ann"]`)}.Publishing(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.Declare("celery@a.celery.pidbox")
	for _, body := range [][]byte{message.Body, []byte("\x80\x05")} {
		message.Body = body
		if err := s.commands.Client.Publish(t.Context(), "celery", message); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.commands.Queues.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	eventually(t, "the queue is seen", func() bool { return visit(t, h, "/ops/queues/celery").Code == http.StatusOK })
	page := visit(t, h, "/ops/queues/celery").Body.String()
	for _, want := range []string{"(&#39;ann&#39;,)", `href="/ops/tasks/mail-1"`, `href="/ops/act/purge?queue=celery"`, "arg.queue=celery"} {
		if !strings.Contains(page, want) {
			t.Errorf("page does not have %s", want)
		}
	}
	if n := strings.Count(page, `href="/ops/tasks/mail-1"`); n != 2 {
		t.Errorf("page lists %d messages, want 2", n)
	}
	names := func(target string) []string { return find(`<tr id="q-([^"]+)"`, visit(t, h, target).Body.String()) }
	if diff := cmp.Diff([]string{"celery"}, names("/ops/queues")); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	eventually(t, "mailboxes are shown on demand", func() bool {
		return cmp.Equal(names("/ops/queues?hidden=true"), []string{"celery", "celery@a.celery.pidbox"})
	})
	if page := visit(t, h, "/ops/queues/celeri").Body.String(); !strings.Contains(page, `href="/ops/queues/celery"`) {
		t.Error("an unknown queue does not lead to the nearest one")
	}
}
