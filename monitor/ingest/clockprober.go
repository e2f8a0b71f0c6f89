package ingest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

const (
	probeEvery  = time.Minute      // per worker
	probeAgain  = 10 * time.Second // where a worker has not replied
	probePause  = 5 * time.Second  // between looks for workers that are due
	probeAtOnce = 500              // workers of one command
)

// ClockProber asks workers for their clock and for a heartbeat once a minute, if this process leads: the two bound how far their
// wall clocks are off (state.ClockProbe).
type ClockProber struct {
	ingester *Ingester
	client   *remote.Client
	probed   map[string]time.Time // by worker; owned by the goroutine of Run
}

// NewClockProber starts nothing.
func NewClockProber(in *Ingester, client *remote.Client) *ClockProber {
	return &ClockProber{ingester: in, client: client, probed: make(map[string]time.Time)}
}

// Run probes until ctx ends. It returns nil.
func (p *ClockProber) Run(ctx context.Context) error {
	ticker := time.NewTicker(probePause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !p.ingester.leader.Leads() {
			continue
		}
		for names := range slices.Chunk(p.due(), probeAtOnce) {
			p.probe(ctx, names)
		}
	}
}

// due returns the workers that are online and were not probed within a minute.
func (p *ClockProber) due() []string {
	now := time.Now()
	var workers []state.Liveness
	p.ingester.View(func(c state.View) { workers = c.Liveness() })
	known := make(map[string]time.Time, len(workers))
	var names []string
	for _, w := range workers {
		at, probed := p.probed[w.Name]
		switch {
		case probed && now.Sub(at) < probeEvery:
			known[w.Name] = at
		case w.Status == state.Online:
			names = append(names, w.Name)
		}
	}
	p.probed = known
	return names
}

// probe asks several workers for their clock, and those that reply for a heartbeat. A worker that has only just started hears
// nothing yet.
func (p *ClockProber) probe(ctx context.Context, names []string) {
	clocks, err := p.client.Send(ctx, remote.Request{Method: "clock", Destination: names})
	if err != nil { // there is no connection
		return
	}
	now := time.Now()
	for _, name := range names {
		p.probed[name] = now.Add(probeAgain - probeEvery)
	}
	names = p.ingester.applyProbes(clocks.Wait(ctx).Items)
	for _, name := range names {
		p.probed[name] = now
	}
	if len(names) == 0 {
		return
	}
	if heartbeats, err := p.client.Send(ctx, remote.Request{Method: "heartbeat", Destination: names}); err == nil {
		heartbeats.Wait(ctx)
	}
}

// applyProbes applies replies to the clock command, and returns the names of the workers that replied. The heartbeat command is
// then to be sent to them.
func (in *Ingester) applyProbes(replies []remote.Reply) (names []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.time().UnixMicro()
	for _, r := range replies {
		var value struct {
			Clock int64 `json:"clock"`
		}
		if r.Node == "" || r.Duplicate || json.Unmarshal(r.Value, &value) != nil {
			continue
		}
		in.cluster.ApplyClockProbe(state.ClockProbe{Worker: r.Node, Clock: value.Clock, SentAt: now})
		names = append(names, r.Node)
	}
	in.notify()
	return names
}
