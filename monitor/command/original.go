package command

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// Parts of a message beside its arguments, as shown to people.
const (
	partPriority  = "priority"
	partLimits    = "time limits"
	partHeaders   = "headers"
	partCallbacks = "callbacks"
)

// Original is what is known of the message of a task to retry, and which parts of it a retry does not have.
type Original struct {
	Request  TaskRequest     // that retries it unchanged, without Original
	Source   string          // of the arguments, empty if they are not fully known
	Shadow   string          // shadow name
	Headers  map[string]any  // of its own, such as stamps
	Embed    json.RawMessage // callbacks, errbacks and chain that the retry has too, nil if none
	Followed bool            // it has callbacks or a chain that the retry does not have
	Group    bool            // it was a member of a group
	Chord    bool            // that group was the header of a chord
	Workflow bool            // events show relatives
	Unknown  []string        // parts of the message that are no longer known
	Refused  []string        // parts that cannot be published again
}

// original returns what is known of a task's message.
func (s *Service) original(ctx context.Context, id string) *Original {
	o, _, err := s.Retry(ctx, id)
	if err != nil {
		return &Original{Unknown: parts()} // nothing is known beyond the request
	}
	return o.Original
}

func parts() []string { return []string{partPriority, partLimits, partHeaders, partCallbacks} }

// carryOver takes from the message of a task in a state what a retry has too. What happens only once stays with the task: its
// part in a chord, and, unless it ended without success, its callbacks and the rest of its chain.
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

// carryHeaders takes the headers that differ from the usual ones.
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

// same reports whether two values are equal as JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// empty reports whether a part of a message is absent or empty.
func empty(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "[]":
		return true
	}
	return false
}

// warnings returns which parts of the original a retry lacks, and which it has unexpectedly.
func (o *Original) warnings(r TaskRequest) []Warning {
	var list warnings
	alone := o.Workflow && slices.Contains(o.Unknown, partCallbacks)
	unknown := slices.DeleteFunc(slices.Clone(o.Unknown), func(part string) bool {
		return part == partPriority && r.Priority != nil || part == partLimits && (r.Hard != nil || r.Soft != nil) ||
			part == partCallbacks && alone
	})
	if len(unknown) > 0 {
		list.warn(false, "No longer known: its %s. This run goes without.", joinAll(unknown))
	}
	if len(o.Refused) > 0 {
		list.warn(true, "Its %s cannot be published again: this run goes without.", joinAll(o.Refused))
	}
	if len(o.Embed) > 0 {
		list.warn(false, "This run has the %s of the task too.", joinAll(o.followers()))
	}
	if o.Followed {
		list.warn(false, "Its callbacks and the rest of its chain follow the task itself: they do not follow this run.")
	}
	switch {
	case o.Chord:
		list.warn(true, "It was in a chord: this run is not counted there, and the body does not get its result.")
	case o.Group:
		list.warn(false, "It was in a group: this run is not one of its members.")
	case alone:
		list.warn(false, "It is part of a workflow: it is repeated alone, without the callbacks, chain, group or chord that it had.")
	}
	return list
}

// followers returns the names of the parts of Embed.
func (o *Original) followers() []string {
	var embed map[string]json.RawMessage
	_ = json.Unmarshal(o.Embed, &embed) // written by carryOver
	return slices.DeleteFunc([]string{"callbacks", "errbacks", "chain"}, func(part string) bool { return empty(embed[part]) })
}

// maxChildren is how many children of a task are looked up.
const maxChildren = 20

// related reports whether t has relatives that are not its retries, nor the task that it retries.
func (s *Service) related(ctx context.Context, t *state.Task) bool {
	if parent := value(t.ParentID); parent != "" {
		return s.repeats(ctx, t.ID) != parent
	}
	if root := value(t.RootID); root != "" && root != t.ID || len(t.Children) > maxChildren {
		return true
	}
	return slices.ContainsFunc(t.Children, func(child string) bool { return s.repeats(ctx, child) != t.ID })
}

// repeats returns the id of the task that another one retries by a request to Umbel, empty if none.
func (s *Service) repeats(ctx context.Context, id string) string {
	p, _ := s.published(ctx, id)
	return p.RetryOf
}

// retryWarnings counts the retries that lack or repeat parts of what they retry.
func retryWarnings(originals []*Original) []Warning {
	var list warnings
	for _, w := range []struct {
		applies func(o *Original) bool
		severe  bool
		format  string
	}{
		{
			func(o *Original) bool { return len(o.Unknown) > 0 }, false,
			"Some of the priority, time limits, headers and callbacks of %s are no longer known: they run without them.",
		},
		{func(o *Original) bool { return len(o.Refused) > 0 }, true, "Some headers or callbacks of %s cannot be published again."},
		{func(o *Original) bool { return len(o.Embed) > 0 }, false, "Callbacks, errbacks or the rest of the chain of %s follow again."},
		{func(o *Original) bool { return o.Followed }, false, "Callbacks and the rest of the chain of %s do not follow again."},
		{func(o *Original) bool { return o.Group || o.Chord }, true, "The group or chord of %s does not count this run."},
		{
			func(o *Original) bool { return o.Source == fromEvent }, false,
			"The arguments of %s are those that events show. The publisher may have replaced them with others (argsrepr).",
		},
	} {
		n := 0
		for _, o := range originals {
			if w.applies(o) {
				n++
			}
		}
		if n > 0 {
			list.warn(w.severe, w.format, count(n, "task", "tasks"))
		}
	}
	return list
}
