package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/auditlog"
	"github.com/umbelhq/umbel/monitor/history"
)

// records is a store in memory.
type records struct {
	mu   sync.Mutex
	list []history.AuditRecord
	err  error
}

func (s *records) AppendAudit(_ context.Context, a history.AuditRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.list = append(s.list, a)
	}
	return s.err
}

// all returns what was written.
func (s *records) all() []history.AuditRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func newLog(t *testing.T, o auditlog.Options) *auditlog.Log {
	t.Helper()
	l, err := auditlog.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func appended(t *testing.T, l *auditlog.Log, r history.AuditRecord) {
	t.Helper()
	if err := l.Append(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func TestRecordsAreCompletedCutAndRedacted(t *testing.T) {
	t.Parallel()
	s := new(records)
	at := time.Unix(1_790_000_000, 0)
	l := newLog(t, auditlog.Options{
		Store: s, Now: func() time.Time { return at }, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
	})
	appended(t, l, history.AuditRecord{Actor: "ada", Action: "ping", Target: "task hunter2", Detail: `{"password":"hunter2"}`})
	appended(t, l, history.AuditRecord{
		Kind: history.AuditExport, Outcome: history.AuditFailed, Actor: strings.Repeat("ü", 200), Target: strings.Repeat("x", 5_000), Detail: `{"broken`,
	})
	want := []history.AuditRecord{
		{
			At: at, Kind: history.AuditAction, Outcome: history.AuditAccepted, Actor: "ada", Action: "ping", Target: "task ***",
			Detail: `{"password":"***"}`,
		},
		{
			At: at, Kind: history.AuditExport, Outcome: history.AuditFailed, Actor: strings.Repeat("ü", 128) + "…",
			Target: strings.Repeat("x", 1_024) + "…", Detail: `{"omitted":true}`,
		},
	}
	if diff := cmp.Diff(want, s.all()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestAFloodOfRefusalsIsCounted has one attacker try 10,000 names, and a thousand addresses once each.
func TestAFloodOfRefusalsIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(records)
		l := newLog(t, auditlog.Options{Store: s})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		refused := history.AuditRecord{Kind: history.AuditLogin, Outcome: history.AuditRefused, Action: "login"}
		for i := range 10_000 {
			refused.Actor, refused.RemoteAddr = fmt.Sprint("user", i), "192.0.2.1"
			appended(t, l, refused)
		}
		for i := range 1_000 {
			refused.RemoteAddr = fmt.Sprint("2001:db8::", i)
			appended(t, l, refused)
		}
		appended(t, l, history.AuditRecord{Kind: history.AuditLogin, Action: "login", Actor: "ada"})
		if got, want := len(s.all()), auditlog.MaxRefused+1; got != want {
			t.Fatalf("%d records were written at once, want %d", got, want)
		}
		<-time.After(2 * auditlog.Window)
		synctest.Wait()
		var numbers []string
		for _, r := range s.all()[auditlog.MaxRefused+1:] {
			if r.Actor != "" || r.Outcome != history.AuditRefused {
				t.Errorf("the sum is %+v", r)
			}
			numbers = append(numbers, r.RemoteAddr+" "+r.Detail[:strings.IndexByte(r.Detail, ',')])
		}
		want := []string{
			`(others) {"refused":951`, `192.0.2.1 {"refused":9995`, `2001:db8::45 {"refused":1`, `2001:db8::46 {"refused":1`,
			`2001:db8::47 {"refused":1`, `2001:db8::48 {"refused":1`,
		}
		if diff := cmp.Diff(want, numbers); diff != "" {
			t.Errorf("sums (-want +got):\n%s", diff)
		}
		n := len(s.all())
		appended(t, l, refused)
		if len(s.all()) != n+1 {
			t.Error("the next window does not begin anew")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWasCountedIsWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	s := new(records)
	l := newLog(t, auditlog.Options{Store: s})
	for range 7 {
		appended(t, l, history.AuditRecord{Kind: history.AuditAccess, Outcome: history.AuditRefused, RemoteAddr: "192.0.2.1", Endpoint: "/outbox/audit"})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(s.all()) != auditlog.MaxEach+1 || !strings.Contains(s.all()[auditlog.MaxEach].Detail, `"refused":2`) {
		t.Errorf("records %+v, want %d and the sum of two", s.all(), auditlog.MaxEach)
	}
}

func TestAStoreThatFails(t *testing.T) {
	t.Parallel()
	s := &records{err: errors.New("disk full")}
	if err := newLog(t, auditlog.Options{Store: s}).Append(t.Context(), history.AuditRecord{Action: "export"}); !errors.Is(err, s.err) {
		t.Errorf("error %v, want %v", err, s.err)
	}
	if _, err := auditlog.New(auditlog.Options{}); err == nil {
		t.Error("a log without a store: no error")
	}
}
