package query

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/umbelhq/umbel/state"
)

// maxSuggestions is how many suggestions a visitor can take in.
const maxSuggestions = 10

// Suggestion is what a query that is being written may go on with.
type Suggestion struct {
	Text       string // the new text of the bytes from Start to End
	Help       string // what it means, in a few words, may be empty
	Start, End int
}

// Complete returns what may stand where the cursor, a byte of text, is: fields first, then values of the field. The
// best come first: those that begin with what is there, that contain it, that look like it. values returns the
// known values of a field of type Word, or State, that contain part without regard to case; nil knows none.
func Complete(text string, cursor int, values func(f Field, part string) []string) []Suggestion {
	cursor = max(0, min(cursor, len(text)))
	if values == nil {
		values = func(Field, string) []string { return nil }
	}
	start, end := wordAt(text, cursor)
	p := parser{in: text[start:end]}
	name := p.name()
	colon := start + len(name)
	if name == "" || cursor <= colon {
		if name != "" {
			end = colon + 1
		}
		part := text[start:min(cursor, end)]
		if strings.HasPrefix(part, `"`) {
			return nil // a text as it stands
		}
		return ranked(part, start, end, conditions(part, name == "", values))
	}
	f, ok := FieldNamed(strings.ToLower(name))
	if !ok {
		return nil
	}
	if f.Causal() {
		known := values
		values = func(_ Field, part string) []string { return known(ID, part) }
	}
	start, end = valueAt(text, colon+1, end, cursor)
	part := unquoted(text[start:cursor])
	if known := ranked(part, start, end, choices(f, values(f, part))); len(known) > 0 || part == "" {
		return known
	}
	return ranked(part, start, end, choices(f, values(f, "")))
}

// wordAt returns the word around the cursor, without the sign of negation.
func wordAt(text string, cursor int) (start, end int) {
	quoted, escaped := false, false
	for i, r := range text {
		boundary := !quoted && (unicode.IsSpace(r) || r == '(' || r == ')')
		if boundary && i >= cursor {
			return start, i
		}
		switch {
		case boundary || !quoted && r == '-' && i == start && i < cursor:
			start = i + len(string(r))
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		}
	}
	return start, len(text)
}

// valueAt returns the value around the cursor, in a list of values from start to end.
func valueAt(text string, start, end, cursor int) (first, last int) {
	quoted := false
	first = start
	for i := start; i < end; i++ {
		switch {
		case text[i] == '"' && text[i-1] != '\\':
			quoted = !quoted
		case text[i] == ',' && !quoted && i >= cursor:
			return first, i
		case text[i] == ',' && !quoted:
			first = i + 1
		}
	}
	return first, end
}

// unquoted is the text of a value that is not complete.
func unquoted(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `"`, ``).Replace(strings.TrimPrefix(s, "~"))
}

// choice is a candidate for a suggestion.
type choice struct {
	text, help string
	match      string // what is compared with the part that is there; text if empty
}

// conditions are what a condition may begin with, and, if whole, whole conditions too.
func conditions(part string, whole bool, values func(Field, string) []string) []choice {
	var all []choice
	for _, f := range [...]Field{
		State, Name, Worker, Queue, Run, Received, Exception, Args, Is, Finished, Wait, Retries, Result, ID,
	} {
		all = append(all, choice{text: f.String() + ":", help: f.Help()})
	}
	for _, f := range Fields() {
		if f == Cluster && len(values(Cluster, "")) == 0 { // there is one, without a name
			continue
		}
		for _, alias := range append([]string{f.String()}, fields[f].aliases...) {
			all = append(all, choice{text: f.String() + ":", help: f.Help(), match: alias})
		}
	}
	if !whole || part == "" {
		return all
	}
	for _, f := range [...]Field{State, Is, Dup} {
		for _, c := range choices(f, nil) {
			all = append(all, choice{f.String() + ":" + c.text, c.help, c.text})
		}
	}
	for _, name := range values(Name, part) {
		all = append(all, choice{format(Equal(Name, name)), Name.Help(), name})
	}
	return append(all, choice{text: "OR", help: "one side or the other"}, choice{text: "NOT", help: "not what follows"})
}

// choices are what a value of a field may be, those that are known among them.
func choices(f Field, known []string) []choice {
	var all []choice
	add := func(help string, texts ...string) {
		for _, s := range texts {
			all = append(all, choice{text: s, help: help})
		}
	}
	switch {
	case f == State:
		for _, s := range state.States() {
			add("", strings.ToLower(string(s)))
		}
		for _, s := range known {
			add("", strings.ToLower(s))
		}
	case f == Is:
		for _, s := range IsValues() {
			all = append(all, choice{text: s, help: isHelp(s)})
		}
	case f == Dup:
		for _, s := range DupValues() {
			all = append(all, choice{text: s, help: dupHelp(s)})
		}
	case f == Outbox:
		for _, s := range OutboxValues() {
			all = append(all, choice{text: s, help: outboxHelp(s)})
		}
	case f.Type() == Word, f == Cluster, f.Causal():
		for _, s := range known {
			all = append(all, choice{text: quoted(f, s), match: s})
		}
	case f.Type() == Time:
		add("since then", "-15m..", "-1h..", "-24h..", "-7d..", "-30d..")
		add("until now", "..now")
	case f.Type() == Duration:
		add("longer", ">100ms", ">1s", ">10s", ">1m", ">1h")
		add("shorter", "<100ms", "<1s")
	case f.Type() == Number:
		add("", ">0", "0", "1")
	}
	return all
}

func isHelp(value string) string {
	switch value {
	case IsActive:
		return "not finished"
	case IsFinished:
		return "succeeded, failed, revoked or rejected"
	case IsRetried:
		return "retried at least once"
	case IsRedelivered:
		return "received again after it had been started"
	case IsLost:
		return "unfinished, and not expected to end"
	case IsDismissed:
		return "unfinished, and dismissed by a user"
	case IsOrphaned:
		return "its process ended without reporting a result"
	default:
		return "some text was cut"
	}
}

func dupHelp(value string) string {
	switch value {
	case DupAny:
		return "repeats work, retries aside"
	case DupRedelivery:
		return "received again after it had been started"
	case DupResend:
		return "sent twice under one id"
	case DupRetry:
		return "retried at least once"
	case DupOverlapping:
		return "ran while the same call did"
	case DupRerun:
		return "ran after the same call had succeeded"
	default:
		return "skipped by a lock"
	}
}

// ranked returns suggestions for a part that is there, each text once, the best first.
func ranked(part string, start, end int, all []choice) []Suggestion {
	type ranking struct {
		Suggestion
		rank int
	}
	part = strings.ToLower(part)
	var found []ranking
	for _, c := range all {
		if rank, ok := rank(part, strings.ToLower(cmp.Or(c.match, c.text))); ok {
			found = append(found, ranking{Suggestion{c.text, c.help, start, end}, rank})
		}
	}
	slices.SortStableFunc(found, func(a, b ranking) int { return cmp.Compare(a.rank, b.rank) })
	var best []Suggestion
	for _, r := range found {
		if len(best) < maxSuggestions && !slices.Contains(best, r.Suggestion) {
			best = append(best, r.Suggestion)
		}
	}
	return best
}

// rank says how well a candidate goes with the part that is there, 0 best, false if it does not.
func rank(part, candidate string) (int, bool) {
	switch {
	case strings.HasPrefix(candidate, part):
		return 0, true
	case strings.Contains(candidate, part):
		return 1, true
	case len(part) > maxName:
		return 0, false
	}
	// What is there may go on: compare it with as much of the candidate.
	d := min(distance(part, candidate), distance(part, candidate[:min(len(candidate), len(part))]))
	return 1 + d, d <= (len(part)-1)/4
}
