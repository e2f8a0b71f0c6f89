// Package auditlog writes the audit log and keeps floods out of it: whoever is refused again and again costs a record with
// a number, not a record each time. It decides nothing about who may do what.
package auditlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/history"
)

// Bounds of the records of what was refused, within a Window.
const (
	Window     = 10 * time.Minute
	MaxEach    = 5  // records of one kind from one address
	MaxRefused = 50 // records of all; beyond, they are counted in one
	maxSources = 50 // kinds and addresses that are counted apart
)

// Bounds of a record, in bytes.
const (
	maxName   = 256
	maxText   = 1_024
	maxDetail = 64 << 10
)

// others is the address of what was refused to more addresses than are counted apart.
const others = "(others)"

// Store keeps the records: a history.Outbox.
type Store interface {
	AppendAudit(ctx context.Context, a history.AuditRecord) error
}

// Options of a Log. Store is required.
type Options struct {
	Store  Store
	Redact func(text string) string // takes secrets out of a text, or JSON; nil changes nothing
	Now    func() time.Time         // nil means time.Now
	Logger *slog.Logger             // nil discards
}

// Log is a history.AuditLog. It is safe for concurrent use.
type Log struct {
	store  Store
	redact func(text string) string
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex
	begun   time.Time // of the window
	written int       // records of what was refused, in the window
	sources map[source]*refusals
}

// source is where refusals of one kind come from.
type source struct {
	kind    history.AuditKind
	address string
}

// refusals are those of one source within a window.
type refusals struct {
	written int                 // with a record of their own
	counted int                 // without
	last    history.AuditRecord // of those counted
}

var _ history.AuditLog = (*Log)(nil)

// New validates o and starts nothing.
func New(o Options) (*Log, error) {
	if o.Store == nil {
		return nil, errors.New("the audit log needs a store")
	}
	l := &Log{store: o.Store, redact: o.Redact, now: o.Now, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), sources: map[source]*refusals{}}
	if l.redact == nil {
		l.redact = func(text string) string { return text }
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l, nil
}

// Append implements history.AuditLog. Long fields are cut. Of what was refused, the first MaxEach of a kind from an address,
// and the first MaxRefused of all, are written in each Window; others are counted, and Run writes their number.
func (l *Log) Append(ctx context.Context, r history.AuditRecord) error {
	r = l.bounded(r)
	if r.Outcome == history.AuditRefused && !l.admit(r) {
		return nil
	}
	return l.store.AppendAudit(ctx, r)
}

// bounded completes a record, redacts it, and cuts its long fields.
func (l *Log) bounded(r history.AuditRecord) history.AuditRecord {
	if r.At.IsZero() {
		r.At = l.now()
	}
	r.Kind, r.Outcome = cmp.Or(r.Kind, history.AuditAction), cmp.Or(r.Outcome, history.AuditAccepted)
	for field, limit := range map[*string]int{
		&r.Actor: maxName, &r.Method: maxName, &r.Role: maxName, &r.RemoteAddr: maxName, &r.Action: maxName,
		&r.Endpoint: maxText, &r.Target: maxText,
	} {
		*field = truncate.Text(l.redact(*field), limit)
	}
	if r.Detail != "" {
		if r.Detail = l.redact(r.Detail); len(r.Detail) > maxDetail || !json.Valid([]byte(r.Detail)) {
			r.Detail = `{"omitted":true}`
		}
	}
	return r
}

// admit reports whether a refusal gets a record, else it is counted.
func (l *Log) admit(r history.AuditRecord) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.IsZero() {
		l.begun = l.now()
	}
	key := source{r.Kind, r.RemoteAddr}
	s := l.sources[key]
	if s == nil {
		if len(l.sources) >= maxSources {
			key.address = others
			s = l.sources[key]
		}
		if s == nil {
			s = new(refusals)
			l.sources[key] = s
		}
	}
	if s.written < MaxEach && l.written < MaxRefused && key.address != others {
		s.written++
		l.written++
		return true
	}
	s.counted++
	s.last = r
	return false
}

// Run writes, at the end of each Window and when ctx ends, what was counted in it. It returns nil.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(Window / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.flush(context.WithoutCancel(ctx), l.take())
			return nil
		case <-tick.C:
			if l.over() {
				l.flush(ctx, l.take())
			}
		}
	}
}

// over reports whether a window has begun and ended.
func (l *Log) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun.IsZero() {
		return false
	}
	age := l.now().Sub(l.begun)
	return age >= Window || age < 0 // the clock was set back
}

// take ends the window and returns the records of what was counted in it.
func (l *Log) take() []history.AuditRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []history.AuditRecord
	for key, s := range l.sources {
		if s.counted == 0 {
			continue
		}
		detail, err := json.Marshal(map[string]any{"refused": s.counted, "since": l.begun.UTC().Format(time.RFC3339)})
		if err != nil {
			panic(err) // a number and a text
		}
		list = append(list, history.AuditRecord{
			At: l.now(), Kind: key.kind, Outcome: history.AuditRefused, RemoteAddr: key.address, Endpoint: s.last.Endpoint,
			Action: s.last.Action, Target: s.last.Target, Detail: string(detail),
		})
	}
	slices.SortFunc(list, func(a, b history.AuditRecord) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.RemoteAddr, b.RemoteAddr))
	})
	l.begun, l.written = time.Time{}, 0
	clear(l.sources)
	return list
}

func (l *Log) flush(ctx context.Context, list []history.AuditRecord) {
	for _, r := range list {
		if err := l.store.AppendAudit(ctx, r); err != nil {
			l.log.ErrorContext(ctx, "write audit record", "kind", string(r.Kind), "remote_addr", r.RemoteAddr, "error", err)
		}
	}
}
