package peers

import "time"

// State is the part that this process has among its peers.
type State string

// States of a process. It asks the workers if it leads, alone or in fallback.
const (
	Joining  State = "joining"  // it listens who else is there
	Leads    State = "leads"    // it has the lock
	Follows  State = "follows"  // another peer has the lock, or will have it first
	Fallback State = "fallback" // who leads is not known, so each asks
	Off      State = "off"      // switched off: it asks
)

// Status describes this process and its peers.
type Status struct {
	State  State
	Since  time.Time // of State
	Reason string    // of Fallback and Off, a sentence
	ID     string    // of this process, empty while it is not connected
	Host   string
	PID    int
	Peers  []Peer // those known, by host and id
}

// Peer is another process.
type Peer struct {
	ID, Host string
	PID      int
	Leads    bool
	Silent   bool      // beyond its lease
	Since    time.Time // known since
	HeardAt  time.Time
}

// Asks reports whether the process asks the workers.
func (s Status) Asks() bool { return s.State == Leads || s.State == Fallback || s.State == Off }

// Leader returns the peer that leads, nil if that is this process or unknown.
func (s Status) Leader() *Peer {
	for i := range s.Peers {
		if s.Peers[i].Leads && s.State != Leads {
			return &s.Peers[i]
		}
	}
	return nil
}
