// Package view is what readers see of a cluster: tasks in memory and in the history as one list, counts, rates and
// health. It changes nothing but what people save: views, and which groups of failures are resolved. Package command reads
// commands and the audit log.
package view

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/loss"
	"github.com/umbelhq/umbel/state/query"
)

// Gap is loss.Gap.
type Gap = loss.Gap

// Types of ingest, so that readers import view alone.
type (
	// Health is ingest.Health.
	Health = ingest.Health
	// BrokerHealth is ingest.BrokerHealth.
	BrokerHealth = ingest.BrokerHealth
	// StoreHealth is ingest.StoreHealth.
	StoreHealth = ingest.StoreHealth
	// MemoryHealth is ingest.MemoryHealth.
	MemoryHealth = ingest.MemoryHealth
	// NodesHealth is ingest.NodesHealth.
	NodesHealth = ingest.NodesHealth
	// Loss is ingest.Loss.
	Loss = ingest.Loss
	// Rates is ingest.Rates.
	Rates = ingest.Rates
	// Series is ingest.Series.
	Series = ingest.Series
	// Metrics is ingest.Metrics.
	Metrics = ingest.Metrics
)

// Causes of Health.Rejected beside those of package celery.
const (
	CauseSymbols = ingest.CauseSymbols
	CauseEvents  = ingest.CauseEvents
)

// History is what pages read of the history as it is stored, but for commands, and the little that they change there.
type History interface {
	history.FailureGroups
	history.Views
	history.Marks
	history.RollupReader
	history.Duplicates
	history.Workflows

	// Values returns at most limit values of a field that contain part, regardless of case.
	Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error)

	RetentionRules() history.RetentionRules
	ReferenceTime(ctx context.Context) (time.Time, error)
	PlanPrune(ctx context.Context, now time.Time) (history.PrunePlan, error)
	Health() history.Health
}

// Store is the history that a Reader reads.
type Store interface {
	history.TaskReader
	history.PastReader
	History

	// AlertRecords calls f with every record of the log of minutes, as history.Alerts does.
	AlertRecords(ctx context.Context, from time.Time, f func(record []byte) error) error
}

// Source is the cluster that a Reader reads: an ingest.Ingester.
type Source interface {
	View(f func(c state.View))
	Changed() <-chan struct{}
	Notify()        // closes the channel that Changed returned
	Restored() bool // reports whether the state of the last process has been restored
	Health() Health
	Rates() Rates
}

// Reader reads one cluster. It is safe for concurrent use.
type Reader struct {
	source Source
	store  Store
	now    func() time.Time
	counts countCache
	causes causeCache
	// outboxes of applications, nil if none is watched.
	outboxes Outboxes
	cluster  string                                    // see SetCluster
	acksLate func(worker, task string) (late, ok bool) // nil if unknown
}

// New returns a Reader of source and of the store that it is saved to. A nil now means time.Now.
func New(source Source, store Store, now func() time.Time) (*Reader, error) {
	if source == nil || store == nil {
		return nil, errors.New("view needs an ingester and a store")
	}
	if now == nil {
		now = time.Now
	}
	return &Reader{source: source, store: store, now: now}, nil
}

// View calls f with the cluster under a read lock. f copies what it needs; it must not block or retain the
// cluster, or call the Reader.
func (r *Reader) View(f func(c state.View)) { r.source.View(f) }

// Changed returns a channel that is closed at the next change. Take it before reading, or a change between the two
// goes unseen.
func (r *Reader) Changed() <-chan struct{} { return r.source.Changed() }

// Health reports the state of the broker connection and of writing the history.
func (r *Reader) Health() Health { return r.source.Health() }

// Rates returns the rates of the last minute.
func (r *Reader) Rates() Rates { return r.source.Rates() }

// History returns the stored history. Resolving a group of failures and marking through it wakes
// those who wait on Changed.
func (r *Reader) History() History { return notifyingHistory{r.store, r.source.Notify} }

// notifyingHistory calls notify after a change that no event reports.
type notifyingHistory struct {
	History
	notify func()
}

func (h notifyingHistory) NoteFailureGroup(ctx context.Context, id fingerprint.ID, n history.FailureNote) error {
	defer h.notify()
	return h.History.NoteFailureGroup(ctx, id, n)
}

func (h notifyingHistory) ResolveFailureGroup(ctx context.Context, id fingerprint.ID, at time.Time) error {
	defer h.notify()
	return h.History.ResolveFailureGroup(ctx, id, at)
}

func (h notifyingHistory) AddMark(ctx context.Context, m history.Mark) (history.Mark, error) {
	defer h.notify()
	return h.History.AddMark(ctx, m)
}

func (h notifyingHistory) DeleteMark(ctx context.Context, id string) (history.Mark, error) {
	defer h.notify()
	return h.History.DeleteMark(ctx, id)
}
