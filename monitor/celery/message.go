package celery

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/transport"
)

// Message is a task message of protocol 2. ID, Name, Args and Kwargs are required.
type Message struct {
	ID       string
	Name     string
	Args     json.RawMessage // an array
	Kwargs   json.RawMessage // an object
	RootID   string          // ID if empty
	ParentID string
	GroupID  string
	ETA      time.Time // zero: at once
	Expires  time.Time // zero: never
	Retries  int
	Hard     *float64 // time limits, seconds
	Soft     *float64
	Priority *uint8 // 0 to 9
	Origin   string // who publishes, as gen<pid>@host
	// Shadow is a name to show in place of Name.
	Shadow string
	// Embed holds callbacks, errbacks, chain and chord of a message that is sent again, nil for none.
	Embed json.RawMessage
	// Headers are further ones, such as stamps, of a message that is sent again.
	Headers map[string]any
}

// MessageError says where a message is wrong.
type MessageError struct {
	Path    string // args[2].price
	Message string
}

// Error returns the path and what is wrong there.
func (e *MessageError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Message) }

// Publishing checks the message and returns it as it goes to a queue. Its error is a *MessageError: a worker dies of
// a malformed message, and its queue with it, so none leaves here.
func (m Message) Publishing() (transport.Publishing, error) {
	return transport.Publishing{}, errors.New("not there yet")
}

// ParseMessage reads a task message of protocol 2 or 1 that waits in a queue. Args and Kwargs are empty, with an error,
// if its serializer is none that can be read.
func ParseMessage(p transport.Publishing) (Message, error) {
	return Message{}, errors.New("not there yet")
}

// Repr writes an array or object of JSON as Celery's saferepr would show it, cut to its limits.
func Repr(v json.RawMessage) string { return string(v) }

// Literal reads what Python's repr wrote, if it is complete and made of literals that JSON knows, tuples included. It
// is false for anything cut short, and for anything that might have been.
func Literal(repr string) (json.RawMessage, bool) { return nil, false }
