package state

import "github.com/umbelhq/umbel/clock"

// recentSenders is how many processes are found by a short hash, without a look into the tables: few send most events.
const recentSenders = 1 << 8

// sender is a process that has sent events of late. What it names may be gone since.
type sender struct {
	number uint32  // in processes
	worker *worker // nil if it is not known
}

// senderOf returns what may be known of the sender of an event.
func (c *Cluster) senderOf(p clock.Process) *sender { return &c.senders[p.Hash()%recentSenders] }

// acquireProcess is c.processes.acquire of the sender of e.
func (c *Cluster) acquireProcess(e *Event) uint32 {
	p := e.process()
	s := c.senderOf(p)
	if it := &c.processes.items[s.number]; it.refs > 0 && it.key == p {
		it.refs++
		return s.number
	}
	s.number = c.processes.acquire(p)
	return s.number
}

// workerOf returns the worker of the node name that e has, nil if there is none.
func (c *Cluster) workerOf(e *Event) *worker {
	s := c.senderOf(e.process())
	if w := s.worker; w != nil && !w.gone && w.name == e.Hostname {
		return w
	}
	s.worker = c.workers[e.Hostname]
	return s.worker
}
