package action

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/store"
)

// Kinds of commands.
const (
	kindControl = "control"
	kindTask    = "task"
	kindPurge   = "purge"
)

// The payloads of commands, by kind. Their form is that of store.CommandSchema: whoever changes it raises that.
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
	}
	purgePayload struct {
		Queue string `json:"queue"`
	}
)

// headerRetryOf names the task that a message repeats.
const headerRetryOf = "umbel_retry_of"

// message is the payload as it goes to a queue.
func (p taskPayload) message() celery.Message {
	m := celery.Message{
		ID: p.ID, Name: p.Name, Args: p.Args, Kwargs: p.Kwargs, RootID: p.Root, ParentID: p.Parent,
		Priority: p.Priority, Hard: p.Hard, Soft: p.Soft, Origin: p.Origin,
	}
	if p.ETA != nil {
		m.ETA = *p.ETA
	}
	if p.Expires != nil {
		m.Expires = *p.Expires
	}
	if p.RetryOf != "" {
		m.Headers = map[string]any{headerRetryOf: p.RetryOf}
	}
	return m
}

// newCommand is a command with its payload.
func newCommand(kind, group string, payload any) (store.Command, error) {
	b, err := json.Marshal(payload)
	if err != nil {
		return store.Command{}, fmt.Errorf("write payload of %s command: %w", kind, err)
	}
	return store.Command{Schema: store.CommandSchema, Kind: kind, Group: group, Payload: b}, nil
}
