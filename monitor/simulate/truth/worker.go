package truth

import (
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// boot begins a life of a worker.
func (g *generator) boot(w *worker) {
	h := w.host
	w.born++
	after := int32(-1)
	if w.born > 1 { // its supervisor saw the last one end
		after = w.ended
	}
	pid := int64(10 * (len(w.node) + int(w.node[1]-'0')))
	if !g.reusePIDs {
		h.pid++
		pid = h.pid
	}
	w.process = &process{host: h, name: w.node, pid: pid, last: after, clock: int64(g.rng.IntN(50))}
	if w.born == 1 {
		w.clock = int64(g.rng.IntN(2_000))
	}
	w.held, w.pool = nil, nil
	for range 1 + g.rng.IntN(3) {
		w.children++
		child := pid*1_000 + w.children
		if g.reusePIDs {
			child = pid*1_000 + int64(len(w.pool))
		}
		w.pool = append(w.pool, &process{host: h, name: fmt.Sprintf("gen%d@%s", child, h.name), pid: child, clock: w.clock})
	}
	w.idle = slices.Clone(w.pool)
	w.life = len(g.h.Workers)
	g.h.Workers = append(g.h.Workers, Life{Process: clock.Process{Hostname: w.node, PID: pid}, Host: h.name, Began: g.now})
	g.emit(w.process, -1, 0, state.Event{Kind: state.WorkerOnline, Subject: "online"})
	for _, child := range w.pool {
		child.last = w.last
	}
	g.beat(w, w.born)
}

// beat sends a heartbeat each two seconds, and has the others merge its clock.
func (g *generator) beat(w *worker, born int) {
	if w.process == nil || w.born != born || g.now > start+length+20*sec {
		return
	}
	active := int64(0)
	for _, x := range w.held {
		if x.began && !x.ended {
			active++
		}
	}
	e := g.emit(w.process, -1, 0, state.Event{
		Kind: state.WorkerHeartbeat, Subject: "heartbeat", Freq: 2, Active: active, Processed: g.h.Workers[w.life].Accepted,
		Present: state.FieldFreq | state.FieldActive | state.FieldProcessed,
	})
	if g.gossip {
		at, raw := e.report, e.Clock
		for _, o := range g.workers {
			if o == w || g.apart(o, w) {
				continue
			}
			g.after(g.delay(), func() {
				if o.process != nil {
					o.clock = max(o.clock, raw) + 1
					o.last = g.instant(o.last, at)
				}
			})
		}
	}
	g.after(2*sec, func() { g.beat(w, born) })
}

// apart reports whether two workers do not hear each other.
func (g *generator) apart(a, b *worker) bool {
	return g.split != 0 && g.now >= g.split && a.host != b.host
}

// end ends the life of a worker. What it held is delivered again, as with late acknowledgement.
func (g *generator) end(w *worker) {
	if w.process == nil {
		return
	}
	life := &g.h.Workers[w.life]
	life.Ended, life.Crashed = g.now, g.chance(2)
	if !life.Crashed {
		g.emit(w.process, -1, 0, state.Event{Kind: state.WorkerOffline, Subject: "offline"})
	}
	ends := []int32{w.last}
	for _, child := range w.pool {
		ends = append(ends, child.last)
	}
	w.ended = g.instant(ends...)
	for _, x := range w.held {
		if x.ended {
			continue
		}
		if !x.began {
			life.MessagesDropped++
		}
		again := *x.m
		again.instant, again.not = w.ended, nil
		g.after(g.between(10*ms, sec), func() { g.deliver(&again) })
	}
	w.process, w.held, w.pool, w.idle = nil, nil, nil, nil
	g.after(g.between(500*ms, 5*sec), func() { g.boot(w) })
}

// ping asks a worker now and then.
func (g *generator) ping() {
	if g.now > start+length {
		return
	}
	w := g.workers[g.rng.IntN(len(g.workers))]
	sent := g.now
	g.after(g.between(ms/2, 20*ms), func() {
		if w.process == nil {
			return
		}
		w.clock++
		w.last = g.instant(w.last)
		ping, born := len(g.h.Pings), w.born
		g.h.Pings = append(g.h.Pings, Ping{
			Process: clock.Process{Hostname: w.node, PID: w.pid}, Clock: w.clock, Sent: sent,
			Received: g.now + g.between(ms/2, 20*ms), Event: Instant(w.last),
		})
		g.after(g.between(ms/2, 20*ms), func() { g.probe(w, born, ping) })
	})
	g.after(g.between(sec, 4*sec), g.ping)
}

// probe sends the heartbeat command to a worker that has replied.
func (g *generator) probe(w *worker, born, ping int) {
	if w.process == nil || w.born != born {
		return
	}
	g.h.Pings[ping].Probed = g.now
	g.after(g.between(ms/2, 20*ms), func() {
		if w.process != nil && w.born == born {
			g.emit(w.process, -1, 0, state.Event{
				Kind: state.WorkerHeartbeat, Subject: "heartbeat", Freq: 5, FreqIsInt: true, Present: state.FieldFreq,
			})
		}
	})
}
