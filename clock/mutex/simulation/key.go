package simulation

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/clock/mutex"
)

// key identifies states from which the same can happen. Timestamps count by their difference from the least one, since
// only their order and distance matter. Once nobody will make another request, only the order of requests does: clocks serve
// to stamp requests.
func (s *system) key(requests int) [16]byte {
	var buffer [512]byte
	b := buffer[:0]
	last := !slices.ContainsFunc(s.wanted, func(n int) bool { return n < requests })
	rank := s.ranks(last)
	for i, p := range s.processes {
		own, requested := p.Requested()
		b = append(b, bit(requested)|bit(p.Held())<<1, byte(s.wanted[i]), byte(s.releases-s.known[i]))
		if requested {
			b = rank(b, own)
		}
		if !last {
			b = rank(b, clock.Stamp{Clock: p.Now()})
		}
		for _, name := range s.names {
			b = append(b, bit(p.Heard(name)))
		}
		for _, stamp := range p.Queue() {
			b = append(rank(b, stamp), stamp.Origin[len(stamp.Origin)-1])
		}
		b = append(b, 0xff)
	}
	for i, queue := range s.channels {
		b = append(b, byte(len(queue)), bit(s.refused[i]))
		to := s.processes[i%len(s.names)]
		own, requested := to.Requested()
		for _, m := range queue {
			stamp := clock.Stamp{Clock: m.Clock, Origin: m.From}
			b = append(b, byte(m.Kind), byte(s.releases-m.known))
			if !last || m.Kind == mutex.Request {
				b = rank(b, stamp)
			} else {
				b = append(b, bit(requested && stamp.Compare(own) > 0))
			}
		}
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// ranks returns a function that appends the place of a timestamp among all that are in the system.
func (s *system) ranks(last bool) func([]byte, clock.Stamp) []byte {
	if last {
		return s.orders()
	}
	base := int64(math.MaxInt64)
	for _, p := range s.processes {
		base = min(base, p.Now())
		for _, stamp := range p.Queue() {
			base = min(base, stamp.Clock)
		}
	}
	for _, queue := range s.channels {
		for _, m := range queue {
			base = min(base, m.Clock)
		}
	}
	return func(b []byte, stamp clock.Stamp) []byte { return binary.AppendVarint(b, stamp.Clock-base) }
}

// orders is ranks by order alone, for requests.
func (s *system) orders() func([]byte, clock.Stamp) []byte {
	var all []clock.Stamp
	for _, p := range s.processes {
		all = append(all, p.Queue()...)
	}
	for _, queue := range s.channels {
		for _, m := range queue {
			if m.Kind == mutex.Request {
				all = append(all, clock.Stamp{Clock: m.Clock, Origin: m.From})
			}
		}
	}
	slices.SortFunc(all, clock.Stamp.Compare)
	all = slices.Compact(all)
	return func(b []byte, stamp clock.Stamp) []byte {
		i, _ := slices.BinarySearchFunc(all, stamp, clock.Stamp.Compare)
		return append(b, byte(i))
	}
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
