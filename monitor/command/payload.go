package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
)

// Kinds of commands.
const (
	kindControl = "control"
	kindTask    = "task"
	kindPurge   = "purge"
	kindDrain   = "drain"
	kindUndrain = "undrain"
	// KindRelease is the kind of commands that release locks, and the action of their audit records.
	KindRelease = "release"
)

// Payloads of commands by kind, as JSON. A change to them raises history.CommandSchema.
type (
	controlPayload struct {
		Method      string         `json:"method"`
		Arguments   map[string]any `json:"arguments,omitempty"`
		Destination []string       `json:"destination,omitempty"` // empty is every worker
	}
	taskPayload struct {
		Queue    string          `json:"queue"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Args     json.RawMessage `json:"args"`
		Kwargs   json.RawMessage `json:"kwargs"`
		Root     string          `json:"root,omitempty"`
		Parent   string          `json:"parent,omitempty"`
		RetryOf  string          `json:"retry_of,omitempty"`
		ETA      *time.Time      `json:"eta,omitempty"`
		Expires  *time.Time      `json:"expires,omitempty"`
		Priority *uint8          `json:"priority,omitempty"`
		Hard     *float64        `json:"hard,omitempty"`
		Soft     *float64        `json:"soft,omitempty"`
		Origin   string          `json:"origin"`

		// Of a retried message. Older payloads lack them.
		Shadow  string          `json:"shadow,omitempty"`
		Headers headers         `json:"headers,omitempty"`
		Embed   json.RawMessage `json:"embed,omitempty"`

		// Redacted says that it was sent, and that secrets were taken out of it then.
		Redacted bool `json:"redacted,omitempty"`

		// Of the message's body. Older payloads lack it, and are in JSON.
		Serializer celery.Serializer `json:"serializer,omitempty"`
	}
	purgePayload struct {
		Queue string `json:"queue"`
	}
)

// headerRetryOf is the header with the id of the task that a message retries.
const headerRetryOf = "umbel_retry_of"

// message returns the payload as a task message.
func (p taskPayload) message() celery.Message {
	m := celery.Message{
		ID: p.ID, Name: p.Name, Args: p.Args, Kwargs: p.Kwargs, RootID: p.Root, ParentID: p.Parent,
		Priority: p.Priority, HardLimit: p.Hard, SoftLimit: p.Soft, Origin: p.Origin, Shadow: p.Shadow, Embed: p.Embed, Serializer: p.Serializer,
	}
	m.Headers = maps.Clone(p.Headers)
	if p.ETA != nil {
		m.ETA = *p.ETA
	}
	if p.Expires != nil {
		m.Expires = *p.Expires
	}
	if p.RetryOf != "" {
		if m.Headers == nil {
			m.Headers = make(map[string]any)
		}
		m.Headers[headerRetryOf] = p.RetryOf
	}
	return m
}

// headers are those of a message, with integers as int64 and other numbers as float64.
type headers map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (h *headers) UnmarshalJSON(b []byte) error {
	s := json.NewDecoder(bytes.NewReader(b))
	s.UseNumber()
	var m map[string]any
	if err := s.Decode(&m); err != nil {
		return err
	}
	*h, _ = whole(m).(map[string]any)
	return nil
}

// whole returns a decoded JSON value with integers as int64 and other numbers as float64.
func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // always one
		return f
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = whole(v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key := range v {
			m[key] = whole(v[key])
		}
		return m
	}
	return v
}

// newCommand returns a command with its payload.
func newCommand(kind, group string, payload any) (history.Command, error) {
	b, err := json.Marshal(payload)
	if err != nil {
		return history.Command{}, fmt.Errorf("write payload of %s command: %w", kind, err)
	}
	return history.Command{Schema: history.CommandSchema, Kind: kind, Group: group, Payload: b}, nil
}
