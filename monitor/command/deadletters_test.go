package command_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// outboxOf watches an outbox as "shop" and runs a command service that changes it.
func outboxOf(t *testing.T, url string) *command.Service {
	t.Helper()
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	source, err := database.New(database.Options{URL: url + separator + "name=shop"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{source}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
		if err := w.Close(); err != nil {
			t.Errorf("close outboxes: %v", err)
		}
	})
	for {
		changed := w.Changed()
		if o := w.Snapshot()[0]; !o.ReadAt.IsZero() {
			break
		} else if o.Err != nil {
			t.Fatalf("read the outbox: %v", o.Err)
		}
		<-changed
	}
	return watch(t, inproc.New(inproc.Options{}), func(o *command.Options) { o.Outboxes = w })
}

// bury makes n dead letters.
func bury(t *testing.T, p *testdjango.Project, n int) (ids []int64) {
	t.Helper()
	for range n {
		ids = append(ids, p.Bury(t, p.Enqueue(t, "shop.charge", []any{7}, nil)))
	}
	return ids
}

// text returns the reply to the only command of a request once it is done.
func text(t *testing.T, s *command.Service, r command.Receipt) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	list, err := s.Relay.Wait(ctx, []int64{r.Commands[0].ID})
	if err != nil || len(r.Commands) != 1 || len(list) != 1 || list[0].State != history.CommandDone || len(list[0].Replies) != 1 {
		t.Fatalf("commands %+v, %v; want one that is done", list, err)
	}
	return list[0].Replies[0].Text
}

func TestDeadLettersAreRequeuedOnce(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	s := outboxOf(t, p.URL)
	ids := bury(t, p, 3)
	request := command.DeadLetterRequest{Action: command.RequeueDeadLetters, Outbox: "shop", IDs: ids}
	preview, err := s.PreviewDeadLetters(t.Context(), request)
	if err != nil || preview.Selected != 3 || preview.Confirm != "" || !slices.Equal(preview.Targets, []string{"shop.charge (3)"}) {
		t.Errorf("preview: %+v, %v", preview, err)
	}
	by := command.Caller{Actor: "ann", IdempotencyKey: "form 1"}
	first, err := s.ChangeDeadLetters(t.Context(), by, request, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, s, first), "3 dead letters moved into the outbox"; got != want {
		t.Errorf("reply = %q, want %q", got, want)
	}
	again, err := s.ChangeDeadLetters(t.Context(), by, request, "")
	if err != nil || !again.Replayed || again.Commands[0].ID != first.Commands[0].ID {
		t.Errorf("the same form again: %+v, %v, want the first request", again, err)
	}
	// A relay that crashed before it recorded the outcome sends the command again.
	sent, err := s.Send(t.Context(), first.Commands[0])
	if err != nil {
		t.Fatal(err)
	}
	sent.Replies(t.Context(), func(replies []history.Reply) {
		if got, want := replies[0].Text, "0 dead letters moved into the outbox; 3 are in the outbox already"; got != want {
			t.Errorf("reply to the repetition = %q, want %q", got, want)
		}
	})
	var rows int
	if p.Do(t, &rows, `result = CeleryOutbox.objects.count()`); rows != 3 {
		t.Errorf("%d rows in the outbox, want 3", rows)
	}
	var wrong *command.Error
	if _, err := s.ChangeDeadLetters(t.Context(), command.Caller{}, request, ""); !errors.As(err, &wrong) || wrong.Kind != command.Conflict {
		t.Errorf("requeue what is none: %v, want a conflict", err)
	}
	audit, _, err := s.AuditLog(t.Context(), history.AuditFilter{Limit: 10})
	if err != nil || len(audit) != 1 || audit[0].Actor != "ann" || audit[0].Action != command.RequeueDeadLetters {
		t.Errorf("audit log: %+v, %v, want one record", audit, err)
	}
}

func TestPurgeOfDeadLettersIsTyped(t *testing.T) {
	t.Parallel()
	p := testdjango.SQLite(t, "")
	s := outboxOf(t, p.URL)
	bury(t, p, 2)
	request := command.DeadLetterRequest{Action: command.PurgeDeadLetters, Outbox: "shop", All: true, Name: "shop.*"}
	preview, err := s.PreviewDeadLetters(t.Context(), request)
	if err != nil || preview.Selected != 2 || preview.Confirm != "shop" || len(preview.Warnings) != 1 {
		t.Errorf("preview: %+v, %v, want 2 to be confirmed by shop", preview, err)
	}
	var wrong *command.Error
	if _, err := s.ChangeDeadLetters(t.Context(), command.Caller{}, request, "yes"); !errors.As(err, &wrong) || wrong.Field != "confirm" {
		t.Errorf("purge with another word: %v, want an error of confirm", err)
	}
	receipt, err := s.ChangeDeadLetters(t.Context(), command.Caller{}, request, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, s, receipt), "2 dead letters removed"; got != want {
		t.Errorf("reply = %q, want %q", got, want)
	}
	capped := command.DeadLetterRequest{Action: command.RequeueDeadLetters, Outbox: "shop", All: true, Cap: 2}
	bury(t, p, 3)
	if preview, err := s.PreviewDeadLetters(t.Context(), capped); err != nil || preview.Selected != 2 || !preview.Capped {
		t.Errorf("preview with a cap of 2: %+v, %v", preview, err)
	}
}

func TestChangesOfDeadLettersNeedGrants(t *testing.T) {
	t.Parallel()
	p := testdjango.PostgreSQL(t, "")
	s := outboxOf(t, p.Role(t, "SELECT ON celery_outbox, celery_outbox_dead_letter"))
	ids := bury(t, p, 1)
	for action, want := range map[string][]string{
		command.RequeueDeadLetters: {"GRANT INSERT ON ", "GRANT DELETE ON "},
		command.PurgeDeadLetters:   {"GRANT DELETE ON "},
	} {
		_, err := s.PreviewDeadLetters(t.Context(), command.DeadLetterRequest{Action: action, Outbox: "shop", IDs: ids})
		var wrong *command.Error
		if !errors.As(err, &wrong) || wrong.Kind != command.Conflict || strings.Count(wrong.Message, "GRANT") != len(want) {
			t.Fatalf("%s: %v, want a conflict", action, err)
		}
		for _, grant := range want {
			if !strings.Contains(wrong.Message, grant) {
				t.Errorf("%s: %q lacks %s", action, wrong.Message, grant)
			}
		}
	}
	// What was enqueued before the privilege was withdrawn fails for good.
	c := history.Command{
		Kind: command.RequeueDeadLetters, Schema: history.CommandSchema, Payload: []byte(`{"outbox":"shop","letters":[{"id":1,"task_id":"a"}]}`),
	}
	if _, err := s.Send(t.Context(), c); !errors.Is(err, relay.ErrPermanent) || !strings.Contains(err.Error(), "INSERT") {
		t.Errorf("send: %v, want a permanent error that names the privilege", err)
	}
}

func TestRequestsForDeadLettersAreChecked(t *testing.T) {
	t.Parallel()
	s := outboxOf(t, testdjango.SQLite(t, "").URL)
	for field, request := range map[string]command.DeadLetterRequest{
		"action": {Action: "burn", Outbox: "shop", All: true},
		"outbox": {Action: command.PurgeDeadLetters, Outbox: "shopp", All: true},
		"ids":    {Action: command.PurgeDeadLetters, Outbox: "shop"},
		"cap":    {Action: command.PurgeDeadLetters, Outbox: "shop", All: true, Cap: command.MaxCap + 1},
	} {
		var wrong *command.Error
		if _, err := s.PreviewDeadLetters(t.Context(), request); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%+v: %v, want an error of %s", request, err, field)
		}
	}
}
