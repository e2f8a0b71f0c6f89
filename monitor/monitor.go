// Package monitor owns the state of a cluster: it receives events from a broker, folds them, and
// lets any number of readers see the newest picture. It serves no page and knows no broker by name.
package monitor

import (
	"context"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/transport"
	"github.com/umbelhq/umbel/state"
)

// Options of a Monitor. Broker is required.
type Options struct {
	Broker       transport.Broker
	State        state.Options
	EnableEvents bool             // broadcast enable_events after connecting, for workers started without -E
	Logger       *slog.Logger     // nil discards
	Now          func() time.Time // nil means time.Now
}

// Monitor watches one Celery cluster. It is safe for concurrent use.
type Monitor struct{}

// New validates o and starts nothing.
func New(o Options) (*Monitor, error) { panic("todo") }

// Run connects, receives and folds until ctx ends, then folds what is buffered. It returns nil after
// an orderly stop. A lost broker is not an error: it is redialled for ever.
func (m *Monitor) Run(ctx context.Context) error { panic("todo") }

// View calls f with the cluster under a read lock. f copies what it needs and must not block, keep
// the cluster, or call the monitor.
func (m *Monitor) View(f func(c *state.Cluster)) { panic("todo") }

// Changed returns a channel that is closed at the next change. Take it before you View, or a change
// between the two goes unseen.
func (m *Monitor) Changed() <-chan struct{} { panic("todo") }

// Health says how the monitor is doing.
func (m *Monitor) Health() Health { panic("todo") }

// Rates returns what happened in the last minute.
func (m *Monitor) Rates() Rates { panic("todo") }
