// Package control holds conversations with workers by Celery's remote control (pidbox): it asks, gathers the replies
// and says who did not answer. It keeps one line to the broker open for all of them, and task messages go the same
// way. It decides nothing about who may ask for what, and remembers no command.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/transport"
)

// ErrUnavailable says that there is no connection to the broker, so that nothing was sent. The cause is wrapped
// beside it.
var ErrUnavailable = errors.New("broker not connected")

// Options of a Client. Broker is required.
type Options struct {
	Broker transport.Broker
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil discards
}

// Client talks to the workers of one cluster. It is safe for concurrent use.
type Client struct{}

// New validates o and starts nothing.
func New(o Options) (*Client, error) { return &Client{}, nil }

// Run keeps a line to the broker open and hands replies to those who wait for them, until ctx ends. It returns nil.
func (c *Client) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Broadcast sends a command without arguments to every worker and wants no reply. It waits for the line until ctx ends.
func (c *Client) Broadcast(ctx context.Context, method string) error { return ErrUnavailable }

// Publish sends a task message to a queue, as transport.Line does. It is ErrUnavailable without a line.
func (c *Client) Publish(ctx context.Context, queue string, m transport.Publishing) error {
	return ErrUnavailable
}

// Purge empties a queue, as transport.Line does.
func (c *Client) Purge(ctx context.Context, queue string) (int64, error) { return 0, ErrUnavailable }

// Peek shows what waits in a queue, as transport.Line does.
func (c *Client) Peek(ctx context.Context, queue string, limit int) ([]transport.Publishing, error) {
	return nil, ErrUnavailable
}

// Find looks for the message of a task, as transport.Line does.
func (c *Client) Find(ctx context.Context, queues []string, taskID string) (*transport.Publishing, error) {
	return nil, ErrUnavailable
}

// Survey looks at queues, as transport.Line does.
func (c *Client) Survey(ctx context.Context, queues []string) (transport.Survey, error) {
	return transport.Survey{}, ErrUnavailable
}

// Question is a command that wants replies.
type Question struct {
	Method      string
	Arguments   map[string]any
	Destination []string // node names; empty is every worker
	// Expect names the workers that should answer, where Destination is empty. If both are, and the broker does not
	// tell how many workers it reached, the whole Timeout is waited.
	Expect  []string
	Timeout time.Duration // for all replies together, 2 s if zero
	Ticket  string        // names the conversation; a new one if empty
}

// Answers are what came back within the time.
type Answers struct {
	Replies []Reply
	// Missing are the workers that should have answered and did not.
	Missing []string
	// Unnamed is how many more mailboxes the broker delivered to than answered, by workers nobody named.
	Unnamed int
	Waited  time.Duration
}

// Reply is what one worker answered.
type Reply struct {
	Node  string
	At    time.Time
	Clock int64
	Value json.RawMessage // null if it could not be decoded
	// OK is the text of a reply {"ok": text}, Error that of {"error": text}; both are empty for data.
	OK, Error string
	// Undecodable says why Value is not known though the worker answered.
	Undecodable string
	// Duplicate says that another worker of the same node name has answered too: a misconfiguration.
	Duplicate bool
}

// Conversation is a question on its way.
type Conversation struct{}

// Send publishes a question and returns when the broker has it. Wait tells the answers. Nothing was sent if the
// error is ErrUnavailable.
func (c *Client) Send(ctx context.Context, q Question) (*Conversation, error) {
	return nil, ErrUnavailable
}

// Wait returns when every reply is in, when the timeout has passed, or when ctx ends, with what there is by then. It
// may be called once, and must be.
func (v *Conversation) Wait(ctx context.Context) Answers { return Answers{} }

// Ask sends a question and waits for the answers.
func (c *Client) Ask(ctx context.Context, q Question) (Answers, error) {
	return Answers{}, ErrUnavailable
}

// Status of the line.
type Status struct {
	Connected bool
	Since     time.Time
	LastError string // without passwords
}

// Status says whether there is a line.
func (c *Client) Status() Status { return Status{} }
