package web_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// lettersOutbox is an application's outbox with dead letters 1 and 2.
type lettersOutbox struct{ outboxwatch.Source }

func (lettersOutbox) Name() string   { return "shop" }
func (lettersOutbox) String() string { return "sqlite:////shop.db" }
func (lettersOutbox) Close() error   { return nil }

func (lettersOutbox) DeadLetters(_ context.Context, r outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	for id := int64(2); id > 0; id-- {
		if r.IDs == nil || slices.Contains(r.IDs, id) {
			page.DeadLetters = append(page.DeadLetters, outboxwatch.DeadLetter{ID: id, TaskID: "a", TaskName: "shop.<b>pay</b>", SchemaVersion: 7})
		}
	}
	return page, nil
}

func TestDeadLettersAreChangedFromAForm(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{lettersOutbox{}}})
	if err != nil {
		t.Fatal(err)
	}
	b := storeBackend{newBackend(t, state.Options{}), db}
	o := command.Options{Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: db, Tasks: b, Outboxes: w}
	service, err := command.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := newWeb(t, web.Options{Backend: b, Commands: service, Prefix: "/ops"})
	for _, tt := range []struct {
		query, words, confirm string
		status, posted        int
	}{
		{"action=requeue&outbox=shop&id=1&id=9", "Move 1 dead letter back into the outbox of shop shop.&lt;b&gt;pay&lt;/b&gt; (1)", "", http.StatusOK, http.StatusSeeOther},
		{"action=requeue&outbox=shop&id=2", "1 of them has a schema_version that the relay leaves in the outbox.", "", http.StatusOK, http.StatusSeeOther},
		{"action=purge&outbox=shop&all=1", "Type shop to confirm", "shop", http.StatusOK, http.StatusSeeOther},
		{"action=purge&outbox=shop&all=1", "Remove 2 dead letters of shop", "other", http.StatusOK, http.StatusBadRequest},
		{"action=requeue&outbox=shop&id=9", "None of these is a dead letter any longer.", "", http.StatusConflict, http.StatusConflict},
		{"action=requeue&outbox=shopp&id=1", "No outbox is named shopp.", "", http.StatusNotFound, http.StatusNotFound},
		{"action=requeue&outbox=shop", "No dead letter is selected.", "", http.StatusBadRequest, http.StatusBadRequest},
		{"action=burn&outbox=shop&id=1", "Dead letters can be requeued or purged.", "", http.StatusBadRequest, http.StatusBadRequest},
	} {
		asked := visit(t, h, "/ops/act/dead-letters?"+tt.query)
		if page := words(asked.Body.String()); asked.Code != tt.status || !strings.Contains(page, tt.words) {
			t.Errorf("%s = %d, want %d and %q: %s", tt.query, asked.Code, tt.status, tt.words, page)
		}
		values := hiddenFields(asked.Body.String(), "/ops/act/dead-letters")
		if tt.status != http.StatusOK {
			values, _ = url.ParseQuery(tt.query)
		}
		values.Set("confirm", tt.confirm)
		if status, location, page := post(t, h, "/ops/act/dead-letters", values); status != tt.posted {
			t.Errorf("post %s = %d to %q, want %d: %s", tt.query, status, location, tt.posted, words(page))
		}
	}
	list, _, err := service.Commands(t.Context(), history.CommandFilter{Limit: 10})
	if err != nil || len(list) != 3 || list[0].Kind != command.PurgeDeadLetters || list[1].Kind != command.RequeueDeadLetters {
		t.Errorf("commands %+v, %v; want two that requeue and one that purges", list, err)
	}

	o.ReadOnly = true
	if service, err = command.New(o); err != nil {
		t.Fatal(err)
	}
	readOnly := newWeb(t, web.Options{Backend: b, Commands: service, Prefix: "/ops", ReadOnly: true})
	if page := visit(t, readOnly, "/ops/act/dead-letters?action=requeue&outbox=shop&id=1"); page.Code != http.StatusNotFound {
		t.Errorf("a read-only dashboard asks = %d, want 404", page.Code)
	}
}
