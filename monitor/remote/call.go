package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
)

const (
	defaultTimeout = 2 * time.Second
	// Bounds of one conversation.
	maxReplies = 10_000
	maxSize    = 64 << 20 // bytes of values
	maxMasked  = 2 << 20  // bytes of a value in which secrets are looked for
)

// Question is a command that wants replies.
type Request struct {
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
type Replies struct {
	Items []Reply
	// Missing are the workers that should have answered and did not, sorted.
	Missing []string
	// Unnamed is how many more mailboxes the broker delivered to than answered, by workers nobody named. It is 0 if
	// everybody who was named has answered.
	Unnamed int
	Elapsed time.Duration
	// Lost says that the line was lost before everybody had answered: what came later is unknown.
	Disconnected bool
}

// Reply is what one worker answered. Secrets are masked in it unless it tells of tasks.
type Reply struct {
	Node  string // empty if an undecodable reply hides it
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
type Call struct {
	client    *Client
	conn      *controlConn
	request   Request
	expected  []string // who should answer, sorted
	receivers int      // -1 if unknown
	sent      time.Time
	timer     *time.Timer
	wake      chan struct{} // holds a token while there are replies that Wait has not seen

	// These are guarded by client.mu.
	replies   []Reply
	size      int
	first     map[string]int  // of replies, by node
	nameless  int             // replies that do not tell who sent them
	pending   map[string]bool // the named that have not answered
	delivered []bool          // of replies: Listen has passed them on
}

// Send publishes a question and returns when the broker has it. Wait tells the answers. Nothing was sent if the
// error is ErrUnavailable.
func (c *Client) Send(ctx context.Context, q Request) (*Call, error) {
	if q.Ticket == "" {
		q.Ticket = rand.Text()
	}
	if q.Timeout <= 0 {
		q.Timeout = defaultTimeout
	}
	v := &Call{
		client: c, request: q, wake: make(chan struct{}, 1), pending: make(map[string]bool), first: make(map[string]int),
	}
	v.expected = slices.Clone(q.Destination)
	if len(v.expected) == 0 {
		v.expected = slices.Clone(q.Expect)
	}
	slices.Sort(v.expected)
	v.expected = slices.Compact(v.expected)
	for _, node := range v.expected {
		v.pending[node] = true
	}
	if err := v.begin(); err != nil {
		return nil, err
	}
	if err := v.publish(ctx); err != nil {
		v.end()
		return nil, err
	}
	v.sent = c.now()
	v.timer = time.NewTimer(q.Timeout)
	return v, nil
}

// begin has replies with the ticket handed to v.
func (v *Call) begin() error {
	c := v.client
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.conn == nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, c.cause)
	case c.calls[v.request.Ticket] != nil:
		return fmt.Errorf("send %s: ticket %s is in use", v.request.Method, v.request.Ticket)
	}
	v.conn = c.conn
	c.calls[v.request.Ticket] = v
	return nil
}

// end undoes begin.
func (v *Call) end() {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	delete(v.client.calls, v.request.Ticket)
}

// publish sends the request.
func (v *Call) publish(ctx context.Context) error {
	q, to := v.request, v.conn.ReplyTo()
	m, err := celery.Request{
		Method: q.Method, Arguments: q.Arguments, Destination: q.Destination, Ticket: q.Ticket, ReplyTo: &to,
	}.Publishing()
	if err != nil {
		return err
	}
	v.receivers, err = v.conn.Request(ctx, m)
	if err != nil {
		return fmt.Errorf("send %s: %w", q.Method, err)
	}
	return nil
}

// read makes a Reply of what a worker wrote.
func (v *Call) read(r celery.Reply, at time.Time) Reply {
	reply := Reply{Node: r.Node, At: at, Clock: r.Clock, Value: r.Value, Undecodable: r.Undecodable}
	switch {
	case r.Value == nil || dataMethod(v.request.Method):
	case len(r.Value) > maxMasked:
		reply.Value, reply.Undecodable = nil, fmt.Sprintf("reply of %d bytes is too long to look for secrets", len(r.Value))
	case canonical(v.request.Method) == "stats":
		reply.Value = v.client.mask.stats(r.Value)
	default:
		reply.Value = v.client.mask.whole(r.Value)
	}
	reply.OK, reply.Error = outcome(reply.Value)
	return reply
}

// add takes a reply. The caller holds client.mu.
func (v *Call) add(r Reply) {
	if len(v.replies) == maxReplies {
		v.client.unmatched++
		return
	}
	if v.size += len(r.Value); v.size > maxSize {
		r.Value, r.Undecodable = nil, "replies are too long to keep"
	}
	switch first, again := v.first[r.Node]; {
	case r.Node == "":
		v.nameless++
	case again:
		v.replies[first].Duplicate, r.Duplicate = true, true
	default:
		v.first[r.Node] = len(v.replies)
	}
	v.replies, v.delivered = append(v.replies, r), append(v.delivered, false)
	delete(v.pending, r.Node)
	select {
	case v.wake <- struct{}{}:
	default: // Wait looks at all of them anyway
	}
}

// outcome returns the text of {"ok": text} or {"error": text}.
func outcome(value json.RawMessage) (ok, failure string) {
	var object map[string]any
	if len(value) < maxOutcome && json.Unmarshal(value, &object) == nil && len(object) == 1 {
		ok, _ = object["ok"].(string)
		failure, _ = object["error"].(string)
	}
	return ok, failure
}

// maxOutcome bounds the texts of outcomes: celery report is the longest.
const maxOutcome = 1 << 20

// Wait returns when every reply is in, when the timeout has passed, or when ctx ends, with what there is by then. It
// or Listen is called once, and must be.
func (v *Call) Wait(ctx context.Context) Replies { return v.WaitEach(ctx, func([]Reply) {}) }

// Listen is like Wait, and calls hear with the replies as they come in, each of them once. Those that do not name their
// worker come at the end, when it is known whose they are.
func (v *Call) WaitEach(ctx context.Context, hear func([]Reply)) Replies {
	defer v.timer.Stop()
	a := v.wait(ctx, hear)
	if fresh := v.undelivered(true); len(fresh) > 0 {
		hear(fresh)
	}
	return a
}

func (v *Call) wait(ctx context.Context, hear func([]Reply)) Replies {
	for {
		if fresh := v.undelivered(false); len(fresh) > 0 {
			hear(fresh)
		}
		if v.complete() {
			return v.close(Replies{})
		}
		select {
		case <-v.wake:
		case <-v.conn.lost:
			return v.close(Replies{Disconnected: !v.complete()})
		case <-v.timer.C:
			return v.close(Replies{})
		case <-ctx.Done():
			return v.close(Replies{})
		}
	}
}

// fresh returns the replies that it has not returned before, those that do not name their worker only at the end.
func (v *Call) undelivered(end bool) []Reply {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	var list []Reply
	for i := range v.replies {
		if !v.delivered[i] && (end || v.replies[i].Node != "") {
			v.delivered[i] = true
			list = append(list, v.replies[i])
		}
	}
	return list
}

// complete reports whether nobody is left who should answer.
func (v *Call) complete() bool {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	if len(v.expected) > 0 {
		return len(v.pending) <= v.nameless
	}
	return v.receivers >= 0 && len(v.replies) >= v.receivers
}

// close ends the conversation and sums it up.
func (v *Call) close(a Replies) Replies {
	v.end()
	c := v.client
	c.mu.Lock()
	defer c.mu.Unlock()
	a.Elapsed = c.now().Sub(v.sent)
	for _, node := range v.expected {
		if v.pending[node] {
			a.Missing = append(a.Missing, node)
		}
	}
	if n := len(a.Missing); n > 0 && n == v.nameless {
		v.attribute(a.Missing)
		a.Missing = nil
	}
	a.Items = v.replies
	c.duplicates.keep(v.request.Ticket, v.replies)
	if len(v.expected) == 0 || len(a.Missing) > 0 && len(v.request.Destination) == 0 {
		a.Unnamed = max(0, v.receivers-len(a.Items)-len(a.Missing))
	}
	return a
}

// attribute names the senders of replies that do not tell: exactly those are left. The caller holds client.mu.
func (v *Call) attribute(nodes []string) {
	for i := range v.replies {
		if v.replies[i].Node == "" {
			v.replies[i].Node, nodes = nodes[0], nodes[1:]
		}
	}
}

// Ask sends a question and waits for the answers.
func (c *Client) Call(ctx context.Context, q Request) (Replies, error) {
	v, err := c.Send(ctx, q)
	if err != nil {
		return Replies{}, err
	}
	return v.Wait(ctx), nil
}
