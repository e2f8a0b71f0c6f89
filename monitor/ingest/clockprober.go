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
	probeEvery  = time.Minute     // per worker
	probePause  = 5 * time.Second // between looks for workers that are due
	probeAtOnce = 500             // workers of one command
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

// probe sends both commands to several workers.
func (p *ClockProber) probe(ctx context.Context, names []string) {
	sent := time.Now()
	clocks, err := p.client.Send(ctx, remote.Request{Method: "clock", Destination: names})
	if err != nil { // there is no connection
		return
	}
	for _, name := range names {
		p.probed[name] = sent
	}
	sentAt := p.ingester.noteProbes(names, sent) // before heartbeats can come
	if heartbeats, err := p.client.Send(ctx, remote.Request{Method: "heartbeat", Destination: names}); err == nil {
		defer heartbeats.Wait(ctx)
	}
	p.ingester.applyReplies(clocks.Wait(ctx).Items, sentAt)
}

// noteProbes tells that the clock command was sent to workers at a time, and returns that time by the local clock, µs: a little
// early, never late.
func (in *Ingester) noteProbes(names []string, sent time.Time) int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.time()
	sentAt := now.Add(-time.Since(sent)).UnixMicro()
	for _, name := range names {
		in.cluster.ApplyClockProbe(state.ClockProbe{Worker: name, SentAt: sentAt})
	}
	return sentAt
}

// applyReplies applies replies to a clock command that was sent at a time.
func (in *Ingester) applyReplies(replies []remote.Reply, sentAt int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, r := range replies {
		var value struct {
			Clock int64 `json:"clock"`
		}
		if r.Node == "" || r.Duplicate || json.Unmarshal(r.Value, &value) != nil {
			continue
		}
		in.cluster.ApplyClockProbe(state.ClockProbe{Worker: r.Node, Clock: value.Clock, SentAt: sentAt})
	}
	in.notify()
}
