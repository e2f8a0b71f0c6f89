package loss

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// savedForm is the first byte of what Save returns.
const savedForm = 1

// savedHeartbeats is how many heartbeats of a process are saved. What older ones prove is.
const savedHeartbeats = 2

var errSaved = errors.New("not what was saved")

// Save returns what is known of the processes of a worker, nil if nothing is: about 200 bytes of each.
func (d *Detector) Save(worker string) []byte {
	var b []byte
	for _, pid := range d.pids[worker] {
		if b == nil {
			b = []byte{savedForm}
		}
		b = d.processes[clock.Process{Hostname: worker, PID: pid}].save(binary.AppendVarint(b, pid))
	}
	return b
}

func (p *process) save(b []byte) []byte {
	q := *p
	q.recent, q.gaps = slices.Clone(p.recent), slices.Clone(p.gaps)
	q.settle(len(q.recent) - savedHeartbeats)
	b = q.first.save(b)
	b = q.settled.from.save(b)
	for _, n := range []int64{q.started, q.events, q.firstTask, q.lastTask, q.settled.missing, q.before, number(q.doubtful), q.seen, q.latest, q.earlier} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendVarint(b, int64(len(q.recent)))
	for i := range q.recent {
		b = q.recent[i].save(b)
	}
	for _, list := range [][]Gap{q.gaps, q.unstarted} {
		b = binary.AppendVarint(b, int64(len(list)))
		for _, g := range list {
			b = binary.AppendVarint(b, int64(len(g.Task)))
			b = append(b, g.Task...)
			for _, n := range []int64{g.Missing, g.After, g.Before, g.AfterMicros, g.BeforeMicros} {
				b = binary.AppendVarint(b, n)
			}
		}
	}
	return b
}

func (h *heartbeat) save(b []byte) []byte {
	for _, n := range []int64{h.clock, h.micros, h.processed, h.active, h.started, h.events, number(h.overtaken)} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// LoadWorker takes over what was saved with a worker: the field Losses of what state.Cluster.SaveWorkers wrote.
func (d *Detector) LoadWorker(saved []byte) error {
	var w struct {
		Name   string
		Losses []byte
	}
	if err := json.Unmarshal(saved, &w); err != nil {
		return fmt.Errorf("load losses: %w", err)
	}
	if len(w.Losses) == 0 || w.Losses[0] != savedForm {
		return nil // of before they were saved
	}
	r := savedReader{rest: w.Losses[1:]}
	for len(r.rest) > 0 {
		l := clock.Process{Hostname: w.Name, PID: r.number()}
		p := r.process()
		if r.bad || d.processes[l] != nil {
			return fmt.Errorf("load losses of %s: %w", w.Name, errSaved)
		}
		p.sum()
		*d.add(l) = *p
		d.missing += p.missing
	}
	return nil
}

// savedReader reads what Save wrote.
type savedReader struct {
	rest []byte
	bad  bool
}

func (r *savedReader) number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// length is the length of a list of at most so many elements.
func (r *savedReader) length(most int) int {
	n := r.number()
	if n < 0 || n > int64(most) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

func (r *savedReader) process() *process {
	p := &process{first: r.heartbeat()}
	p.settled.from = r.heartbeat()
	doubtful := int64(0)
	for _, n := range []*int64{&p.started, &p.events, &p.firstTask, &p.lastTask, &p.settled.missing, &p.before, &doubtful, &p.seen, &p.latest, &p.earlier} {
		*n = r.number()
	}
	p.doubtful = doubtful != 0
	for range r.length(maxHeartbeats) {
		p.recent = append(p.recent, r.heartbeat())
	}
	p.gaps, p.unstarted = r.gaps(maxGaps), r.gaps(maxUnstarted)
	return p
}

func (r *savedReader) heartbeat() (h heartbeat) {
	overtaken := int64(0)
	for _, n := range []*int64{&h.clock, &h.micros, &h.processed, &h.active, &h.started, &h.events, &overtaken} {
		*n = r.number()
	}
	h.overtaken = overtaken != 0
	return h
}

func (r *savedReader) gaps(most int) (list []Gap) {
	for range r.length(most) {
		var g Gap
		n := r.length(len(r.rest))
		if n > len(r.rest) {
			r.bad, r.rest = true, nil
			return nil
		}
		g.Task, r.rest = string(r.rest[:n]), r.rest[n:]
		for _, n := range []*int64{&g.Missing, &g.After, &g.Before, &g.AfterMicros, &g.BeforeMicros} {
			*n = r.number()
		}
		list = append(list, g)
	}
	return list
}
