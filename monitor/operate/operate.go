// Package operate joins what acts on a cluster and what is seen of it beyond events: conversations with workers, the
// outbox and its relay, queues, and results. It decides nothing itself.
package operate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Options of Operations. Broker, Store and Tasks are required.
type Options struct {
	Broker   broker.Broker
	Store    history.Outbox
	Tasks    command.Tasks   // a monitor
	Workers  command.Workers // a monitor; nil if workers cannot be forgotten
	Results  results.Backend // nil if there is none; who opened it closes it
	ReadOnly bool            // nothing is sent, not even what waits in the outbox
	// Unfinished are the tasks about which workers and the result backend are asked, a monitor; nil asks nobody. With
	// ReadOnly workers are not asked.
	Unfinished Unfinished
	// Flow tells what events say of queues, as a monitor does; nil if nobody knows.
	QueueCounters func() (byQueue map[string]queues.Counters, unrouted map[string]int64)
	// Hide names queues of Umbel's own.
	Hide   []string
	Now    func() time.Time
	Logger *slog.Logger
}

// Operations are the parts. None is nil but Results, and with ReadOnly Commands and Relay.
type Operations struct {
	Client    *remote.Client
	Inspector *remote.Inspector
	Queues    *queues.Watcher
	Commands  *command.Service
	Relay     *relay.Relay
	Results   results.Backend

	reconciler *reconciler // nil if nobody is asked about unfinished tasks
}

// New validates o and starts nothing.
func New(o Options) (*Operations, error) {
	if o.Broker == nil || o.Store == nil || o.Tasks == nil {
		return nil, errors.New("operations need a broker, a store and tasks")
	}
	p := &Operations{Results: o.Results}
	var err error
	p.Client, err = remote.New(remote.Options{Broker: o.Broker, Now: o.Now, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	p.Inspector, err = remote.NewInspector(remote.InspectorOptions{Client: p.Client, Alive: alive(o.Tasks), Now: o.Now})
	if err != nil {
		return nil, err
	}
	if o.Unfinished != nil {
		p.reconciler = &reconciler{tasks: o.Unfinished, results: o.Results, now: o.Now}
		if o.Now == nil {
			p.reconciler.now = time.Now
		}
		if !o.ReadOnly {
			p.reconciler.inspector = p.Inspector
		}
	}
	p.Queues, err = queues.New(queues.Options{
		Stats: p.Client.QueueStats, Consumers: p.known(o.Tasks), Complete: p.complete, Counters: p.flow(o.QueueCounters),
		HeldUntil: held(o.Tasks), Hidden: o.Hide, Now: o.Now,
	})
	if err != nil {
		return nil, err
	}
	if o.ReadOnly {
		return p, nil
	}
	p.Commands, err = command.New(command.Options{
		Outbox: o.Store, Client: p.Client, Inspector: p.Inspector, Tasks: o.Tasks, Workers: o.Workers, Unfinished: o.Unfinished,
		Results: o.Results, Now: o.Now, Logger: o.Logger,
		Wake: func() { p.Relay.Wake() }, // the relay is made after the service that it sends with
	})
	if err != nil {
		return nil, err
	}
	p.Relay, err = relay.New(relay.Options{Store: o.Store, Sender: p.Commands, Now: o.Now, Logger: o.Logger})
	return p, err
}

// alive returns the names of the workers that should answer.
func alive(tasks command.Tasks) func() []string {
	return func() []string {
		var names []string
		tasks.View(func(c *state.Cluster) {
			for _, w := range c.Workers() {
				if w.Status == state.Online {
					names = append(names, w.Name)
				}
			}
		})
		return names
	}
}

// known returns the consumers of queues, as workers tell, and the queues of tasks.
func (p *Operations) known(tasks command.Tasks) func() map[string][]string {
	return func() map[string][]string {
		consumers := make(map[string][]string)
		tasks.View(func(c *state.Cluster) {
			for name := range c.Counts().ByQueue {
				consumers[name] = nil
			}
		})
		maps.Copy(consumers, p.Inspector.PeekTopology().Queues)
		return consumers
	}
}

// complete says whether every worker has told what it consumes.
func (p *Operations) complete() bool {
	t := p.Inspector.PeekTopology()
	return !t.At.IsZero() && len(t.Missing) == 0
}

// flow returns what events tell of queues.
func (p *Operations) flow(counters func() (map[string]queues.Counters, map[string]int64)) func() map[string]queues.Counters {
	if counters == nil {
		return nil
	}
	return func() map[string]queues.Counters {
		byQueue, unrouted := counters()
		return queues.RouteCounters(byQueue, unrouted, p.Inspector.PeekTopology().Queues)
	}
}

// held says whether workers have received tasks that are not to start until after a moment.
func held(tasks command.Tasks) func(ctx context.Context, after time.Time) bool {
	return func(ctx context.Context, after time.Time) bool {
		q, err := query.Parse("state:received eta:>" + after.UTC().Format(time.RFC3339))
		if err != nil {
			return false
		}
		page, err := tasks.Tasks(ctx, history.TaskRequest{Query: q, Limit: 1, Now: after})
		return err == nil && len(page.Tasks) > 0
	}
}

// Run runs the parts until ctx ends. The relay gets to record what it was sending. It returns nil.
func (p *Operations) Run(ctx context.Context) error {
	line, cut := context.WithCancel(context.WithoutCancel(ctx)) // the relay's last words need it
	defer cut()
	var g errgroup.Group
	g.Go(func() error { return p.Client.Run(line) })
	g.Go(func() error { return p.Inspector.Run(ctx) })
	g.Go(func() error { return p.Queues.Run(ctx) })
	if p.reconciler != nil {
		g.Go(func() error { return p.reconciler.run(ctx) })
	}
	g.Go(func() error {
		defer cut()
		if p.Relay == nil {
			<-ctx.Done()
			return nil
		}
		return p.Relay.Run(ctx)
	})
	return g.Wait()
}
