package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const secret = "hunterzwei"

// withoutSecret replaces the secret in all that is stored.
func withoutSecret() history.Edit {
	text := func(s string) string { return strings.ReplaceAll(s, secret, "********") }
	return history.Edit{
		ID: "test", Text: text, Query: text,
		Event: func(e *state.Event, _ string) {
			for _, s := range []*string{&e.Args, &e.Kwargs, &e.Result, &e.Exception, &e.Traceback} {
				*s = text(*s)
			}
			for key, value := range e.Extra {
				e.Extra[key] = text(value)
			}
		},
		Command: func(_ string, payload []byte) []byte { return []byte(text(string(payload))) },
		Message: func(kind string) bool { return kind == "notification" },
		Record:  func(record []byte) ([]byte, error) { return []byte(text(string(record))), nil },
		Audit:   func(target, detail string) (string, string) { return text(target), text(detail) },
	}
}

// writeSecrets writes the secret wherever a history can have it, and removes some of that again.
func writeSecrets(t *testing.T, dir string) {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, Rules: history.RetentionRules{Failed: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	now := time.Now()
	const present = state.FieldClock | state.FieldPID | state.FieldTimestamp
	c := state.New(state.Options{Track: true})
	var journal []byte
	for i := range 700 {
		at := now.Add(-time.Minute)
		if i < 200 {
			at = at.Add(-24 * time.Hour)
		}
		e := state.Event{
			Kind: state.TaskReceived, Hostname: "celery@a", PID: 1, Clock: int64(2*i + 1), ID: fmt.Sprintf("task-%03d", i), Name: "shop.pay",
			Args: fmt.Sprintf("('%s', %d)", secret, i), Kwargs: "{'token': '" + secret + "'}",
			Micros: at.UnixMicro(), ReceivedMicros: at.UnixMicro() + 5, Present: present | state.FieldName | state.FieldArgs | state.FieldKwargs,
		}
		if i%7 == 0 {
			e.Args, e.Kwargs = "(1,)", "{}"
		}
		c.Apply(&e)
		e.Kind, e.Clock, e.Present = state.TaskFailed, e.Clock+1, present|state.FieldException|state.FieldTraceback
		e.Exception, e.Traceback = "ValueError('"+secret+" is wrong')", "Traceback: "+secret
		if i%7 == 0 {
			e.Exception, e.Traceback = "KeyError('a')", "Traceback: a"
		}
		change := c.Apply(&e)
		journal = state.AppendEvent(journal, &e, change.Clock)
	}
	w := state.Event{
		Kind: state.WorkerHeartbeat, Hostname: "celery@a", PID: 1, Clock: 9000, Freq: 2, Micros: now.UnixMicro(), ReceivedMicros: now.UnixMicro(),
		Present: present | state.FieldFreq, Extra: map[string]string{"license": `"` + secret + `"`},
	}
	change := c.Apply(&w)
	journal = state.AppendEvent(journal, &w, change.Clock)
	saveAll(t, d, c)
	workers := map[string][]byte{}
	if err := c.SaveWorkers(nil, func(name string, saved []byte) { workers[name] = bytes.Clone(saved) }); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Write(t.Context(), history.Batch{At: now.UnixMicro(), Journal: journal, Checkpoint: &history.Checkpoint{Clock: 1, Workers: workers}}); err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"args":["` + secret + `"]}`)
	_, _, err = d.Enqueue(t.Context(), history.CommandRequest{
		Commands: []history.Command{{Kind: "task", Group: "a", Target: "queue a", Summary: "Run " + secret, Payload: payload}},
		Audit:    history.AuditRecord{At: now, Action: "publish", Detail: `{"a":"` + secret + `"}`},
	})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := d.Claim(t.Context(), "relay", now.Add(time.Second), 10, 10)
	if err != nil || len(claimed.Commands) != 1 {
		t.Fatalf("Claim = %v, %v", claimed, err)
	}
	err = d.RecordOutcomes(t.Context(), "relay", now, []history.Outcome{{ID: claimed.Commands[0].ID, State: history.CommandSent, SentAt: now}})
	if err == nil {
		err = d.AddReplies(t.Context(), now, []history.CommandReplies{{
			ID: claimed.Commands[0].ID, State: history.CommandDone, Replies: []history.Reply{{Node: "celery@a", At: now, Text: secret}},
		}})
	}
	if err == nil {
		err = d.AppendAudit(t.Context(), history.AuditRecord{Action: "later", At: now})
	}
	if err == nil {
		err = d.Prune(t.Context(), now, func(history.Pruned) {})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holding returns the files of a directory that have the secret.
func holding(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		b, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			files = append(files, entry.Name())
		}
	}
	return files
}

// After an edit, no byte of a file has what was edited, even if the edit was interrupted.
func TestEditLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSecrets(t, dir)
	if holding(t, dir) == nil {
		t.Fatal("nothing was written")
	}
	d := open(t, dir)
	plan, err := d.PlanEdit(t.Context(), withoutSecret(), func(history.Edited) {})
	if err != nil {
		t.Fatal(err)
	}
	plan.Examined = 0
	want := history.Edited{Tasks: 429, Journal: 1, Workers: 1, Snapshots: 1, Commands: 1, Failures: 1, Audit: 1, Rows: plan.Rows}
	if !reflect.DeepEqual(plan, want) {
		t.Errorf("PlanEdit = %+v, want %+v", plan, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	by := history.AuditRecord{At: time.Now(), Action: "redact"}
	first, err := d.Edit(ctx, withoutSecret(), by, func(history.Edited) { cancel() })
	if !errors.Is(err, context.Canceled) || first.Tasks == 0 || first.Tasks >= 429 {
		t.Fatalf("Edit = %+v, %v, want a part and that it was canceled", first, err)
	}
	closed(t, d)
	d = open(t, dir)
	second, err := d.Edit(t.Context(), withoutSecret(), by, func(history.Edited) {})
	if err != nil || first.Tasks+second.Tasks != 429 || first.Examined+second.Examined <= 700-200 || second.Examined > plan.Rows-first.Examined+1 {
		t.Errorf("Edit = %+v, %v after %+v, want the rest", second, err, first)
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("VerifyAudit = %d, %v", bad, err)
	}
	records, _, err := d.AuditLog(t.Context(), history.AuditFilter{Action: "redact"})
	if err != nil || len(records) != 1 || !strings.Contains(records[0].Detail, "former_hash") {
		t.Errorf("the audit log has %v, %v, want the former hash", records, err)
	}
	groups, err := d.FailureGroups(t.Context(), history.FailureRequest{Limit: 10, Now: time.Now()})
	if err != nil || len(groups.Groups) != 2 {
		t.Errorf("%d groups of failures, %v, want 2", len(groups.Groups), err)
	}
	s, err := d.Snapshot(t.Context(), time.Now().UnixMicro())
	if err != nil || strings.Contains(fmt.Sprint(s.Workers), secret) || !strings.Contains(fmt.Sprint(s.Workers), "license") {
		t.Errorf("snapshot %v, %v", s.Workers, err)
	}
	found, err := d.Count(t.Context(), query.New(query.Term{Field: query.Kwargs, Values: []query.Value{{Match: query.Contains, Text: "********"}}}), time.Now(), 1000)
	if err != nil || found.N != 429 {
		t.Errorf("%d tasks have redacted arguments, %v, want 429", found.N, err)
	}
	if again, err := d.PlanEdit(t.Context(), withoutSecret(), func(history.Edited) {}); err != nil || again.Changed() != 0 {
		t.Errorf("PlanEdit = %+v, %v, want nothing", again, err)
	}
	if files := holding(t, dir); files != nil { // the log is empty already
		t.Errorf("the secret is in %v", files)
	}
	closed(t, d)
	if files := holding(t, dir); files != nil {
		t.Errorf("the secret is in %v", files)
	}
}

// An edit reaches what people wrote and what alerts told of it. What is still to be sent is named, and reached once it is discarded.
func TestEditReachesWhatPeopleWrote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	now := time.Now()
	command := func(kind, group string) history.Command {
		return history.Command{Kind: kind, Group: group, Target: "lock " + secret, Summary: "Run " + secret, Payload: []byte(`{"args":["` + secret + `"]}`)}
	}
	_, err := d.SaveView(t.Context(), history.View{Name: secret, Query: "args:" + secret})
	if err == nil {
		_, err = d.AddMark(t.Context(), history.Mark{At: now, Text: secret, Link: "https://ci.example/" + secret, Service: secret, Version: secret})
	}
	rule := history.AlertRule{Name: secret, Definition: []byte(`{"kind":"threshold","query":"args:` + secret + `","limit":2.5}`), SavedAt: now}
	if err == nil {
		rule, err = d.SaveAlertRule(t.Context(), rule)
	}
	if err == nil {
		err = d.UpdateAlerts(t.Context(), history.AlertUpdate{
			At: now, Record: []byte("record " + secret), Commands: []history.Command{command("notification", "b")},
			Began: []history.AlertFiring{{RuleID: rule.ID, RuleName: secret, Start: now, Evidence: []byte(`{"text":"` + secret + `","value":3}`)}},
		})
	}
	var ids [2]int64
	for i := range ids {
		if err == nil {
			var list []history.Command
			list, _, err = d.Enqueue(t.Context(), history.CommandRequest{Commands: []history.Command{command("task", "a")}, Audit: history.AuditRecord{At: now, Action: "publish"}})
			if err == nil {
				ids[i] = list[0].ID
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	by := history.AuditRecord{At: now, Action: "redact"}
	edited, err := d.Edit(t.Context(), withoutSecret(), by, func(history.Edited) {})
	if err != nil || edited.Views != 1 || edited.Marks != 1 || edited.Alerts != 3 || edited.Commands != 3 || edited.Waiting != 2 || !slices.Equal(edited.WaitingIDs, ids[:]) {
		t.Errorf("Edit = %+v, %v, want a view, a mark, 3 of alerts, 3 commands, and %v that keep their payload", edited, err, ids)
	}
	if holding(t, dir) == nil {
		t.Error("a command that is still to be sent has lost its arguments")
	}
	rules, err := d.AlertRules(t.Context())
	if want := `{"kind":"threshold","limit":2.5,"query":"args:********"}`; err != nil || len(rules) != 1 || string(rules[0].Definition) != want {
		t.Errorf("rules %+v, %v, want %s", rules, err, want)
	}
	if _, err := d.Discard(t.Context(), ids[:], now, history.AuditRecord{At: now, Action: "discard"}); err != nil {
		t.Fatal(err)
	}
	if edited, err = d.Edit(t.Context(), withoutSecret(), by, func(history.Edited) {}); err != nil || edited.Waiting != 0 || edited.Commands != 2 {
		t.Errorf("Edit = %+v, %v, want the two commands", edited, err)
	}
	closed(t, d)
	if files := holding(t, dir); files != nil {
		t.Errorf("the secret is in %v", files)
	}
}

// What is edited differs in nothing else.
func TestEditKeepsTasks(t *testing.T) {
	t.Parallel()
	for _, b := range testBatches(t, 300, 5, 100) {
		for _, saved := range b.Tasks {
			edited, changed, err := state.EditTask(saved.View.ID, saved.Events, func(*state.Event) {})
			if err != nil || changed || !bytes.Equal(edited, saved.Events) {
				t.Fatalf("EditTask of %s: %v, changed %v", saved.View.ID, err, changed)
			}
			edited, _, err = state.EditTask(saved.View.ID, saved.Events, func(e *state.Event) { e.Args = strings.ToUpper(e.Args) })
			if err != nil {
				t.Fatal(err)
			}
			want, wantEvents, err := state.DecodeTask(saved.View.ID, saved.Events)
			if err != nil {
				t.Fatal(err)
			}
			got, gotEvents, err := state.DecodeTask(saved.View.ID, edited)
			if want.Args != nil {
				want.Args = new(strings.ToUpper(*want.Args))
			}
			if err != nil || !reflect.DeepEqual(got, want) || len(gotEvents) != len(wantEvents) {
				t.Fatalf("task %+v, want %+v (%v)", got, want, err)
			}
		}
		edited, changed, err := state.EditJournal(b.Journal, func(*state.Event) {})
		if err != nil || changed || len(edited) != len(b.Journal) {
			t.Fatalf("EditJournal: %v, changed %v", err, changed)
		}
	}
}
