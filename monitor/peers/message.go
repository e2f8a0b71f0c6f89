package peers

import (
	"encoding/json"
	"fmt"

	"github.com/umbelhq/umbel/clock/mutex"
	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	version    = 1
	maxMembers = 64   // peers; the algorithm's messages grow with their number
	maxName    = 256  // bytes of an id or a hostname
	maxLeft    = 1000 // ids remembered after they left

	// MaxNote bounds a note, in bytes.
	MaxNote = 128 << 10
)

// message is what a peer publishes, as JSON: that it is there, and what the algorithm sends.
type message struct {
	Version  int    `json:"version"`
	From     string `json:"from"` // id, a new one whenever the sender joins
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Sequence uint64 `json:"sequence"`          // counts the messages of From, from 1
	Leads    bool   `json:"leads,omitempty"`   // the sender has the lock
	Leaving  bool   `json:"leaving,omitempty"` // the sender takes part no longer under this id
	// Members are the peers that the sender has heard from.
	Members []string        `json:"members,omitempty"`
	Lock    []mutex.Message `json:"lock,omitempty"`
	// Note is what a sender that leads has for those that may lead after it.
	Note string `json:"note,omitempty"`
}

// decode reads a message, and returns an error if it cannot be one of a peer.
func decode(body []byte) (m message, err error) {
	if len(body) > broker.MaxPeerMessage {
		return m, fmt.Errorf("%d bytes are too many for a message of a peer", len(body))
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("decode message of a peer: %w", err)
	}
	switch {
	case m.Version != version:
		return m, fmt.Errorf("a peer uses version %d of the protocol, and this Umbel version %d", m.Version, version)
	case m.From == "" || len(m.From) > maxName || len(m.Host) > maxName || len(m.Members) > maxMembers || len(m.Lock) > 2*maxMembers || len(m.Note) > MaxNote:
		return m, fmt.Errorf("message of peer %.40q is out of bounds", m.From)
	}
	return m, nil
}
