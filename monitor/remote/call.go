package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
)

const (
	defaultTimeout = 2 * time.Second
	// Bounds of one call.
	maxReplies = 10_000
	maxSize    = 64 << 20 // bytes of values
	maxMasked  = 2 << 20  // bytes of a value that is searched for secrets
)

// beatPrefix begins the node names of Celery beat, which replies to pings since version 5.7 and is no worker.
const beatPrefix = "celerybeat@"

// BeatNode is the usual node name of Celery beat on a host.
func BeatNode(host string) string { return beatPrefix + host }

// Request is a command that wants replies.
type Request struct {
	Method      string
	Arguments   map[string]any
	Destination []string // node names; empty is every worker
	// Expect names the workers that should reply if Destination is empty. If both are empty and the broker does not
	// report how many workers it reached, the call lasts for the whole Timeout.
	Expect  []string
	Timeout time.Duration // for all replies together, 2 s if zero
	Ticket  string        // names the call; a new one if empty
}

// Replies is the outcome of a call.
type Replies struct {
	Items []Reply
	// Missing are the workers that should have replied and did not, sorted.
	Missing []string
	// Unnamed is how many more mailboxes received the request than replied, of workers not named in it. It is 0 if
	// all that were named have replied.
	Unnamed int
	Elapsed time.Duration
	// Disconnected reports that the connection was lost before all had replied: later replies are unknown.
	Disconnected bool
}

// Reply is the reply of one worker. Secrets are masked unless it is about tasks.
type Reply struct {
	Node  string // empty if an undecodable reply hides it
	At    time.Time
	Clock int64
	Value json.RawMessage // null if it could not be decoded
	// OK is the text of a reply {"ok": text}, Error that of {"error": text}; both are empty for data.
	OK, Error string
	// Undecodable says why the reply has no Value.
	Undecodable string
	// Duplicate reports that another worker with the same node name has replied too, a misconfiguration.
	Duplicate bool
}

// Call is a request in progress.
type Call struct {
	client    *Client
	conn      *controlConn
	request   Request
	expected  []string // workers that should reply, sorted
	receivers int      // -1 if unknown
	sent      time.Time
	timer     *time.Timer
	wake      chan struct{} // holds a token while there are replies that WaitEach has not seen

	// These are guarded by client.mu.
	replies   []Reply
	size      int
	first     map[string]int  // of replies, by node
	nameless  int             // replies that do not name their sender
	pending   map[string]bool // expected workers that have not replied
	delivered []bool          // of replies: WaitEach has passed them on
	beats     int             // mailboxes of Celery beat that replied though the request did not name them
}

// Send publishes a request and returns when the broker has it. Wait returns the replies. Nothing was sent if the
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
	v.sent = time.Now()
	v.timer = time.NewTimer(q.Timeout)
	return v, nil
}

// begin registers v for replies with its ticket.
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

// dataMethod reports whether a method reports tasks or queues, which are not a worker's secrets: whoever shows tasks redacts
// their arguments, and a retry needs them as they are.
func dataMethod(name string) bool {
	switch canonical(name) {
	case "active", "reserved", "scheduled", "revoked", "registered", "query_task", "active_queues":
		return true
	}
	return false
}

// read converts a reply and masks it.
func (v *Call) read(r celery.Reply, at time.Time) Reply {
	reply := Reply{Node: r.Node, At: at, Clock: r.Clock, Value: r.Value, Undecodable: r.Undecodable}
	switch {
	case r.Value == nil || dataMethod(v.request.Method):
	case len(r.Value) > maxMasked:
		reply.Value, reply.Undecodable = nil, fmt.Sprintf("reply of %d bytes is too long to look for secrets", len(r.Value))
	case canonical(v.request.Method) == "stats":
		reply.Value = v.client.redact.Stats(r.Value)
	default:
		reply.Value = v.client.redact.Settings(r.Value)
	}
	reply.OK, reply.Error = outcome(reply.Value)
	return reply
}

// add records a reply. The caller holds client.mu.
func (v *Call) add(r Reply) {
	if len(v.replies) == maxReplies {
		return
	}
	if strings.HasPrefix(r.Node, beatPrefix) && !slices.Contains(v.request.Destination, r.Node) {
		v.beats++ // is no worker
		select {
		case v.wake <- struct{}{}:
		default:
		}
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
	default: // the token is enough for all of them
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

// Wait returns when every reply is in, when the timeout has passed, or when ctx ends, with the replies so far.
// Call Wait or WaitEach exactly once.
func (v *Call) Wait(ctx context.Context) Replies { return v.WaitEach(ctx, func([]Reply) {}) }

// WaitEach is like Wait, and calls deliver with the replies as they arrive, each of them once. Replies that do not
// name their worker are passed at the end, when it is known whose they are.
func (v *Call) WaitEach(ctx context.Context, deliver func([]Reply)) Replies {
	defer v.timer.Stop()
	a := v.wait(ctx, deliver)
	if fresh := v.undelivered(true); len(fresh) > 0 {
		deliver(fresh)
	}
	return a
}

func (v *Call) wait(ctx context.Context, deliver func([]Reply)) Replies {
	for {
		if fresh := v.undelivered(false); len(fresh) > 0 {
			deliver(fresh)
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

// undelivered returns the replies not returned before; those that do not name their worker only at the end.
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

// complete reports whether all expected replies are in.
func (v *Call) complete() bool {
	v.client.mu.Lock()
	defer v.client.mu.Unlock()
	if len(v.expected) > 0 {
		return len(v.pending) <= v.nameless
	}
	return v.receivers >= 0 && len(v.replies)+v.beats >= v.receivers
}

// close ends the call and returns its outcome.
func (v *Call) close(a Replies) Replies {
	v.end()
	c := v.client
	c.mu.Lock()
	defer c.mu.Unlock()
	a.Elapsed = time.Since(v.sent)
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
		a.Unnamed = max(0, v.receivers-len(a.Items)-v.beats-len(a.Missing))
	}
	return a
}

// attribute assigns replies without a sender to the workers that are missing, of which there are as many. The
// caller holds client.mu.
func (v *Call) attribute(nodes []string) {
	for i := range v.replies {
		if v.replies[i].Node == "" {
			v.replies[i].Node, nodes = nodes[0], nodes[1:]
		}
	}
}

// Call sends a request and waits for the replies.
func (c *Client) Call(ctx context.Context, q Request) (Replies, error) {
	v, err := c.Send(ctx, q)
	if err != nil {
		return Replies{}, err
	}
	return v.Wait(ctx), nil
}
