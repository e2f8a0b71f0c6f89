package mutex

import "fmt"

// Kind is the kind of a message.
type Kind uint8

// The messages of the algorithm.
const (
	Request     Kind = iota + 1 // the sender wants the lock since Clock
	Acknowledge                 // the sender has the receiver's request, or has nothing to request
	Release                     // the sender has released the lock, or withdrawn its request
)

// String returns request, acknowledge or release.
func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Acknowledge:
		return "acknowledge"
	case Release:
		return "release"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns the name of k.
func (k Kind) MarshalText() ([]byte, error) {
	if k < Request || k > Release {
		return nil, fmt.Errorf("no such message: %s", k)
	}
	return []byte(k.String()), nil
}

// UnmarshalText reads the name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	for known := Request; known <= Release; known++ {
		if known.String() == string(text) {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("no such message: %.20q", text)
}

// Message is one message from a process to another.
type Message struct {
	Kind     Kind   `json:"kind"`
	From     string `json:"from"`
	To       string `json:"to"`
	Sequence uint64 `json:"sequence"` // counts the messages of From to To, from 1
	Clock    int64  `json:"clock"`    // Lamport timestamp, 1 to clock.Max
}
