package tables

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Enqueue implements history.Outbox.
func (d Store) Enqueue(ctx context.Context, o history.CommandRequest) (commands []history.Command, replayed bool, err error) {
	if o.Audit.At.IsZero() {
		o.Audit.At = d.engine.Now()
	}
	err = d.change(ctx, "write commands", func(t tx) (err error) {
		commands, replayed, err = t.enqueue(o)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return commands, replayed, nil
}

// change runs f in a transaction of the outbox.
func (d Store) change(ctx context.Context, what string, f func(t tx) error) (err error) {
	defer d.engine.Annotate(&err, "%s", what)
	return d.update(ctx, f)
}

func (t tx) enqueue(o history.CommandRequest) (commands []history.Command, replayed bool, err error) {
	if err := t.lockOutbox(); err != nil {
		return nil, false, err
	}
	if o.IdempotencyKey != "" {
		first, known, err := requestByKey(t.Context(), t.Tx, o.IdempotencyKey, o.Fingerprint, o.Audit.At)
		if err != nil {
			return nil, false, err
		}
		if known {
			commands, err = requestCommands(t.Context(), t.Tx, first)
			return commands, true, err
		}
	}
	commands = slices.Clone(o.Commands)
	for i := range commands {
		complete(&commands[i], o.Audit)
	}
	var first int64
	if len(commands) > 0 {
		if err := t.Dialect().addCommands(t, commands); err != nil {
			return nil, false, err
		}
		first = commands[0].ID
	}
	o.Audit.Commands, o.Audit.FirstCommand = len(commands), first
	if err := WriteAudit(t.Tx, o.Audit); err != nil {
		return nil, false, err
	}
	if o.IdempotencyKey != "" {
		err = t.rememberKey(o, first)
	}
	return commands, false, err
}

// complete sets empty fields of a new command, and truncates its times to µs.
func complete(c *history.Command, a history.AuditRecord) {
	c.State = history.CommandPending
	c.Schema = cmp.Or(c.Schema, history.CommandSchema)
	c.Actor = cmp.Or(c.Actor, a.Actor)
	if c.CreatedAt.IsZero() {
		c.CreatedAt = a.At
	}
	if c.DueAt.IsZero() {
		c.DueAt = c.CreatedAt
	}
	for _, at := range []*time.Time{&c.CreatedAt, &c.DueAt, &c.ExpiresAt} {
		*at = at.Truncate(time.Microsecond)
	}
}

// addCommands writes the commands of one request, and sets their IDs and RequestIDs.
func (t tx) addCommands(commands []history.Command) error {
	var first int64
	for i := range commands {
		c := &commands[i]
		c.RequestID = first
		if err := t.addCommand(c); err != nil {
			return err
		}
		if i == 0 {
			first = c.ID
			c.RequestID = first
			if err := t.Exec(`UPDATE outbox SET first = command WHERE command = ?`, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCommand writes a new command and sets its ID.
func (t tx) addCommand(c *history.Command) error {
	expected, answers, err := encodeNodes(c)
	if err != nil {
		return err
	}
	c.ID, err = t.Insert("command", `INSERT INTO outbox (`+newColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.RequestID, c.Schema, c.Kind, c.Group, c.Target, c.Summary, notNil(c.Payload), c.TaskID, c.Actor, string(c.State),
		c.Attempts, c.Deferrals, c.LastError, expected, answers, c.CreatedAt.UnixMicro(), c.DueAt.UnixMicro(),
		Micros(c.ExpiresAt), Micros(c.ClaimedAt), Micros(c.SentAt), Micros(c.DoneAt))
	if err != nil {
		return err
	}
	if c.Kind == "control" {
		if err := t.addNodes(c.ID, c.Target); err != nil {
			return err
		}
	}
	return t.addNodes(c.ID, c.Expected...)
}

// lockOutbox has other transactions that add commands wait until this one ends. So the IDs of the commands of a request follow
// each other, a command is seen after those of its group before it, and a key is remembered once.
func (t tx) lockOutbox() error {
	if lock := t.Dialect().lockOutbox; lock != "" {
		var n int64
		return t.Get(lock, nil, &n)
	}
	return nil
}

// addNodes records the nodes that a command is for.
func (t tx) addNodes(id int64, nodes ...string) error {
	for _, node := range nodes {
		if err := t.Exec(`INSERT INTO outbox_nodes (node, command) VALUES (?, ?) ON CONFLICT DO NOTHING`, node, id); err != nil {
			return err
		}
	}
	return nil
}

// RecordOutcomes implements history.Outbox.
func (d Store) RecordOutcomes(ctx context.Context, relay string, now time.Time, outcomes []history.Outcome) error {
	return d.change(ctx, "record outcomes", func(t tx) error { return t.Dialect().recordOutcomes(t, relay, now, outcomes) })
}

// recordOutcomes records outcomes where nobody else writes.
func (t tx) recordOutcomes(relay string, now time.Time, outcomes []history.Outcome) error {
	for _, o := range outcomes {
		if err := t.recordOutcome(relay, now, o); err != nil {
			return err
		}
	}
	return nil
}

func (t tx) recordOutcome(relay string, now time.Time, o history.Outcome) error {
	var known string
	err := t.Get(`SELECT expected FROM outbox WHERE command = ? AND state = 'in_flight' AND relay = ?`, []any{o.ID, relay}, &known)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	expected := known
	if o.Expected != nil {
		if expected, err = encode(o.Expected); err != nil {
			return err
		}
	}
	done := doneAt(o.State, now)
	due := o.DueAt
	if due.IsZero() {
		due = now
	}
	err = t.Exec(`UPDATE outbox SET state = ?, due = ?, attempts = ?, deferrals = ?, error = ?, expected = ?,
			payload = coalesce(?, payload), sent = ?, claimed = NULL, done = ? WHERE command = ?`,
		string(o.State), due.UnixMicro(), o.Attempts, o.Deferrals, o.Error, expected, o.Payload, Micros(o.SentAt), done, o.ID)
	if err == nil && o.State == history.CommandDead {
		err = t.Exec(`INSERT INTO dead_letters (command, reason, at) VALUES (?, ?, ?)
			ON CONFLICT (command) DO UPDATE SET reason = excluded.reason, at = excluded.at`, o.ID, o.Error, done)
	}
	if err != nil {
		return err
	}
	return t.addNodes(o.ID, o.Expected...)
}

// AddReplies implements history.Outbox.
func (d Store) AddReplies(ctx context.Context, now time.Time, replies []history.CommandReplies) error {
	return d.change(ctx, "record replies", func(t tx) error { return t.Dialect().addReplies(t, now, replies) })
}

// addReplies records replies where nobody else writes.
func (t tx) addReplies(now time.Time, replies []history.CommandReplies) error {
	for i := range replies {
		if err := t.addSomeReplies(now, &replies[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t tx) addSomeReplies(now time.Time, r *history.CommandReplies) error {
	found, err := commandsOf(t.Context(), t.Tx, `WHERE command = ? AND state = 'sent'`, r.ID)
	if err != nil || len(found) == 0 {
		return err
	}
	c := &found[0]
	c.Replies = append(c.Replies, r.Replies...)
	_, answers, err := encodeNodes(c)
	if err != nil {
		return err
	}
	err = t.Exec(`UPDATE outbox SET answers = ?, state = ?, done = ? WHERE command = ?`,
		answers, string(r.State), doneAt(r.State, now), r.ID)
	for _, a := range r.Replies {
		if err == nil {
			err = t.addNodes(r.ID, a.Node)
		}
	}
	return err
}

// doneAt returns now as µs since 1970 UTC if the state is final, else nil for NULL.
func doneAt(s history.CommandState, now time.Time) any {
	if !s.Final() {
		return nil
	}
	return now.UnixMicro()
}

// storedReply is history.Reply as it is written.
type storedReply struct {
	Node  string `json:"node"`
	At    int64  `json:"at"` // µs since 1970 UTC
	Text  string `json:"text"`
	OK    bool   `json:"ok"`
	Clock int64  `json:"clock,omitempty"`
}

// encodeNodes encodes the expected nodes and the replies of a command as JSON.
func encodeNodes(c *history.Command) (expected, answers string, err error) {
	if expected, err = encode(c.Expected); err != nil {
		return "", "", err
	}
	list := make([]storedReply, len(c.Replies))
	for i, a := range c.Replies {
		list[i] = storedReply{a.Node, a.At.UnixMicro(), a.Text, a.OK, a.Clock}
	}
	answers, err = encode(list)
	return expected, answers, err
}

// encode returns a list as JSON.
func encode[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encode list: %w", err)
	}
	return string(text), nil
}

// EditReplies returns replies, as they are stored, with f applied to their texts.
func EditReplies(stored string, f func(string) string) (string, error) {
	var list []storedReply
	if err := decodeList(stored, &list); err != nil {
		return "", err
	}
	changed := false
	for i := range list {
		if text := f(list[i].Text); text != list[i].Text {
			list[i].Text, changed = text, true
		}
	}
	if !changed {
		return stored, nil
	}
	return encode(list)
}
