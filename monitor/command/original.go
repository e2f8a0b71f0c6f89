package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// What a message has beside its arguments, by the names that people know.
const (
	partPriority  = "priority"
	partLimits    = "time limits"
	partHeaders   = "headers"
	partCallbacks = "callbacks"
)

// Original is what is known of the message of a task that is to run again, and of what cannot be repeated.
type Original struct {
	Request  TaskRequest     // that would run it again as it was, without this
	Source   string          // of the arguments; empty if they are not known in full
	Shadow   string          // name that it was shown under
	Headers  map[string]any  // of its own, such as stamps
	Embed    json.RawMessage // callbacks, errbacks and chain that follow again, nil if none do
	Followed bool            // callbacks or a chain do not follow again, since they follow the task itself
	Group    bool            // it was a member of a group
	Chord    bool            // and that one the header of a chord
	Workflow bool            // events tell of relatives
	Unknown  []string        // parts of the message that nobody tells of any more
	Refused  []string        // headers and the like that cannot be published again
}

// original looks up what is known of a task's message.
func (s *Service) original(ctx context.Context, id string) *Original {
	o, _, err := s.Retry(ctx, id)
	if err != nil {
		return &Original{Unknown: parts()} // nothing is known of it, and all that is repeated is in the order
	}
	return o.Original
}

func parts() []string { return []string{partPriority, partLimits, partHeaders, partCallbacks} }

// keep takes from the message of a task in a state what its repetition keeps. What happens only once stays with the task:
// its part in a chord, and, unless it has ended without success, its callbacks and the rest of its chain.
func (o *Original) carryOver(m celery.Message, s state.State, now time.Time) {
	o.Unknown, o.Shadow, o.Group = nil, m.Shadow, m.GroupID != ""
	o.carryHeaders(m.Headers, now)
	var embed struct {
		Callbacks json.RawMessage `json:"callbacks"`
		Errbacks  json.RawMessage `json:"errbacks"`
		Chain     json.RawMessage `json:"chain"`
		Chord     json.RawMessage `json:"chord"`
	}
	if len(m.Embed) == 0 || json.Unmarshal(m.Embed, &embed) != nil {
		return
	}
	o.Chord, embed.Chord = !empty(embed.Chord), nil
	if s == state.Success || !s.Final() {
		o.Followed = !empty(embed.Callbacks) || !empty(embed.Chain)
		embed.Callbacks, embed.Chain = nil, nil
	}
	if empty(embed.Callbacks) && empty(embed.Errbacks) && empty(embed.Chain) {
		return
	}
	b, err := json.Marshal(embed)
	if err == nil {
		_, err = celery.Message{ID: "-", Name: "-", Embed: b}.Publishing(now)
	}
	if err != nil || len(b) > celery.MaxArguments {
		o.Refused = append(o.Refused, partCallbacks)
		return
	}
	o.Embed = b
}

// keepHeaders takes those headers that are not as they always are.
func (o *Original) carryHeaders(headers map[string]any, now time.Time) {
	plain := celery.Message{ID: "-", Name: "-"}
	usual, err := plain.Publishing(now)
	if err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if name == headerRetryOf || name == "group_index" || same(headers[name], usual.Headers[name]) {
			continue
		}
		one := plain
		one.Headers = map[string]any{name: headers[name]}
		if _, err := one.Publishing(now); err != nil {
			o.Refused = append(o.Refused, "header "+name)
			continue
		}
		if o.Headers == nil {
			o.Headers = make(map[string]any)
		}
		o.Headers[name] = headers[name]
	}
}

// same reports whether two values are the same as JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// empty reports whether a part of a message is absent, or holds nothing.
func empty(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "[]":
		return true
	}
	return false
}

// warnings say what of the original a repetition does not have, and what it has that people may not expect.
func (o *Original) warnings(order TaskRequest) []Warning {
	var list []Warning
	warn := func(grave bool, format string, args ...any) {
		list = append(list, Warning{Message: fmt.Sprintf(format, args...), Severe: grave})
	}
	alone := o.Workflow && slices.Contains(o.Unknown, partCallbacks)
	unknown := slices.DeleteFunc(slices.Clone(o.Unknown), func(part string) bool {
		return part == partPriority && order.Priority != nil || part == partLimits && (order.Hard != nil || order.Soft != nil) ||
			part == partCallbacks && alone
	})
	if len(unknown) > 0 {
		warn(false, "Not known any more: its %s. This run has none of its own.", all(unknown))
	}
	if len(o.Refused) > 0 {
		warn(true, "Its %s cannot be published again: this run goes without.", all(o.Refused))
	}
	if len(o.Embed) > 0 {
		warn(false, "This run has the %s of the task too.", all(o.followers()))
	}
	if o.Followed {
		warn(false, "Its callbacks and the rest of its chain follow the task itself: they do not follow this run.")
	}
	switch {
	case o.Chord:
		warn(true, "It was in a chord: this run is not counted there, and the body does not get its result.")
	case o.Group:
		warn(false, "It was in a group: this run is not one of its members.")
	case alone:
		warn(false, "It is part of a workflow: it is repeated alone, without the callbacks, chain, group or chord that it had.")
	}
	return list
}

// followers are the parts of Embed.
func (o *Original) followers() []string {
	var embed map[string]json.RawMessage
	_ = json.Unmarshal(o.Embed, &embed) // it is what keep wrote
	return slices.DeleteFunc([]string{"callbacks", "errbacks", "chain"}, func(part string) bool { return empty(embed[part]) })
}

// all names every one of a few things.
func all(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}

// maxKin is how many children of a task are looked at.
const maxKin = 20

// related reports whether t has relatives that are not its own repetitions, nor what it repeats.
func (s *Service) related(ctx context.Context, t *state.Task) bool {
	if parent := value(t.ParentID); parent != "" {
		return s.repeats(ctx, t.ID) != parent
	}
	if root := value(t.RootID); root != "" && root != t.ID || len(t.Children) > maxKin {
		return true
	}
	return slices.ContainsFunc(t.Children, func(child string) bool { return s.repeats(ctx, child) != t.ID })
}

// repeats returns the task that another one repeats by an order of Umbel's, empty if it repeats none.
func (s *Service) repeats(ctx context.Context, id string) string {
	list, _, err := s.outbox.Commands(ctx, history.CommandFilter{TaskID: id, Kind: kindTask, Limit: 1})
	if err != nil || len(list) == 0 {
		return ""
	}
	var p taskPayload
	if decode(list[0], &p) != nil || p.ID != id {
		return ""
	}
	return p.RetryOf
}

// keeping counts what many repetitions keep of what they repeat.
type carried struct {
	unknown, refused, following, followed, grouped int
}

// note counts what one of them keeps.
func (p *bulkPlan) note(o *Original) {
	add := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	add(&p.carried.unknown, len(o.Unknown) > 0)
	add(&p.carried.refused, len(o.Refused) > 0)
	add(&p.carried.following, len(o.Embed) > 0)
	add(&p.carried.followed, o.Followed)
	add(&p.carried.grouped, o.Group || o.Chord)
}

// warnings say so.
func (k carried) warnings() []Warning {
	var list []Warning
	warn := func(n int, grave bool, format string) {
		if n > 0 {
			list = append(list, Warning{Message: fmt.Sprintf(format, count(n, "task", "tasks")), Severe: grave})
		}
	}
	warn(k.unknown, false, "Not all is known any more of the priority, time limits, headers and callbacks of %s: "+
		"they run without what is not.")
	warn(k.refused, true, "Some headers or callbacks of %s cannot be published again.")
	warn(k.following, false, "Callbacks, errbacks or the rest of the chain of %s follow again.")
	warn(k.followed, false, "Callbacks and the rest of the chain of %s do not follow again.")
	warn(k.grouped, true, "Of %s the group or chord does not count this run.")
	return list
}
