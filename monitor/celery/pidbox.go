package celery

import (
	"encoding/json"
	"errors"

	"github.com/umbelhq/umbel/monitor/transport"
)

// Request is a remote control command as it goes to the workers' mailboxes.
type Request struct {
	Method      string
	Arguments   map[string]any     // nil is none
	Destination []string           // node names; empty is every worker
	Ticket      string             // names the conversation; empty if no reply is wanted
	ReplyTo     *transport.ReplyTo // nil if no reply is wanted
}

// Publishing is the request as a message. It fails if an argument is no JSON.
func (r Request) Publishing() (transport.Publishing, error) {
	return transport.Publishing{}, errors.New("not there yet")
}

// Reply is what one worker answered.
type Reply struct {
	Ticket string
	Node   string
	Value  json.RawMessage // tolerant JSON made strict: NaN and infinities are null
	Clock  int64           // the worker's Lamport clock when it answered, 0 if it did not tell
	// Undecodable says why Value is empty though the worker answered, such as that the reply is a pickle.
	Undecodable string
}

// ParseReply reads a reply. The error says why it is no reply at all; the ticket is then still returned if there is
// one.
func ParseReply(m transport.Publishing) (Reply, error) { return Reply{}, errors.New("not there yet") }
