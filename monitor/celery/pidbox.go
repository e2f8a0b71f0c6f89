package celery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/broker"
)

// mimeType returns a content type in lower case and without parameters.
func mimeType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// maxReply is the longest reply that is read. Raw arguments of tasks can make one larger.
const maxReply = 16 << 20

// Request is a remote control command as it goes to the workers' mailboxes.
type Request struct {
	Method      string
	Arguments   map[string]any  // nil is none
	Destination []string        // node names; empty is every worker
	Ticket      string          // identifies the call; empty if no reply is wanted
	ReplyTo     *broker.ReplyTo // nil if no reply is wanted
}

// request is the body of a Request. Workers take a destination that is not a list for a part of their name, and
// all versions expect every key but the last two.
type request struct {
	Method      string          `json:"method"`
	Arguments   map[string]any  `json:"arguments"`
	Destination []string        `json:"destination"`
	Pattern     *string         `json:"pattern"`
	Matcher     *string         `json:"matcher"`
	Ticket      string          `json:"ticket,omitempty"`
	ReplyTo     *broker.ReplyTo `json:"reply_to,omitempty"`
}

// Publishing is the request as a message. It fails if an argument cannot be written as JSON.
func (r Request) Publishing() (broker.Publishing, error) {
	body := request{Method: r.Method, Arguments: r.Arguments, Ticket: r.Ticket, ReplyTo: r.ReplyTo}
	if body.Arguments == nil {
		body.Arguments = map[string]any{}
	}
	if len(r.Destination) > 0 {
		body.Destination = r.Destination
	}
	b, err := json.Marshal(body)
	if err != nil {
		return broker.Publishing{}, fmt.Errorf("encode command %s: %w", r.Method, err)
	}
	return broker.Publishing{
		ContentType:     mimeJSON,
		ContentEncoding: utf8Coding,
		// Workers witness the clock, which 0 leaves as it is, and take no notice of expires.
		Headers: map[string]any{"clock": int64(0), "expires": int64(0)},
		Body:    b,
	}, nil
}

// Reply is the reply of one worker.
type Reply struct {
	Ticket string
	Node   string          // empty if an undecodable reply hides it
	Value  json.RawMessage // tolerant JSON made strict: NaN and infinities are null
	Clock  int64           // the worker's Lamport clock when it replied, 0 if unknown
	// Undecodable says why there is no Value, such as that the reply is a pickle.
	Undecodable string
}

// ParseReply parses a reply. The error says why it is not a reply; the ticket is still returned if there is one.
func ParseReply(m broker.Publishing) (Reply, error) {
	r := Reply{Clock: replyClock(m.Headers["clock"])}
	r.Ticket, _ = m.Headers["ticket"].(string)
	if r.Ticket == "" {
		return r, errors.New("reply has no ticket")
	}
	if r.Undecodable = undecodable(m); r.Undecodable != "" {
		r.Node = pickledNode(m)
		return r, nil
	}
	var nodes map[string]json.RawMessage
	serializer, _ := SerializerOf(m.ContentType)
	body, err := serializer.toJSON(m.Body, readable)
	text := json.RawMessage(nil)
	if err == nil {
		text, err = StrictJSON(body)
	}
	if err == nil {
		err = json.Unmarshal(text, &nodes)
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("decode reply: %w", err)
	case len(nodes) != 1:
		return r, fmt.Errorf("decode reply: it names %d workers, not one", len(nodes))
	}
	for r.Node, r.Value = range nodes {
		if r.Node == "" || len(r.Node) > maxID {
			return Reply{Ticket: r.Ticket}, errors.New("decode reply: it does not name its worker")
		}
	}
	return r, nil
}

// replyClock reads the header clock, which brokers deliver in different types.
func replyClock(v any) int64 {
	switch n := v.(type) {
	case int64:
		return max(n, 0)
	case float64:
		if n > 0 && n < 1<<62 {
			return int64(n)
		}
	}
	return 0
}

// undecodable says why a reply cannot be read, or nothing if it can.
func undecodable(m broker.Publishing) string {
	kind := mimeType(m.ContentType)
	if compression, _ := m.Headers["compression"].(string); compression != "" {
		return fmt.Sprintf("reply is compressed (%s)", truncate.Chars(compression, 64))
	}
	switch {
	case kind == mimePickle:
		return "reply is a pickle (" + mimePickle + "): " + pickleSettings
	case !readableType(kind):
		return fmt.Sprintf("reply is not JSON, MessagePack or YAML (%s): set task_serializer to json", truncate.Chars(kind, 64))
	case len(m.Body) > maxReply:
		return fmt.Sprintf("reply of %d bytes is too long to read", len(m.Body))
	}
	return ""
}

func readableType(contentType string) bool {
	_, ok := SerializerOf(contentType)
	return ok
}

// pickledNode returns the sender of a pickle, if it is known.
func pickledNode(m broker.Publishing) string {
	if mimeType(m.ContentType) != mimePickle {
		return ""
	}
	text, _, err := Unpickle(m.Body)
	if err != nil {
		return ""
	}
	var nodes map[string]json.RawMessage
	if json.Unmarshal(text, &nodes) != nil || len(nodes) != 1 {
		return ""
	}
	for node := range nodes {
		if len(node) <= maxID {
			return node
		}
	}
	return ""
}
