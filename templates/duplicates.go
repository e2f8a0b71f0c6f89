package templates

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// Duplicates is the content of the page that lists groups of tasks that repeat work.
type Duplicates struct {
	Groups        []DuplicateGroup
	Stats         history.DuplicateStats
	Verdict       duplicates.Verdict // only groups with it, all if empty
	Name          string             // only tasks of this name, all if empty
	Most          bool               // most tasks first, else the newest
	Verdicts      []DuplicateChoice  // to choose from
	Sorts         DuplicateSorts
	Rules         int    // saved rules of excluded fields
	Unreadable    bool   // the history cannot be read
	Then          bool   // groups are as they were at an instant
	Newest, Older string // addresses of other pages of the list, empty if there are none
	All           string // address of the list without conditions
}

// DuplicateChoice is a verdict to choose; an empty one stands for all.
type DuplicateChoice struct {
	Verdict duplicates.Verdict
	Href    string
}

// DuplicateSorts are the addresses of the list in another order, empty for the order that it has.
type DuplicateSorts struct{ Tasks, Newest string }

// DuplicateGroup is a group with its call as it is shown.
type DuplicateGroup struct {
	view.DuplicateGroup

	Call string // arguments of its newest task, with secrets masked; empty if unknown
}

// scheduled reports whether tasks of the group run again as a schedule sends them, and repeat nothing otherwise.
func (g DuplicateGroup) scheduled() bool {
	return g.Period > 0 && slices.Equal(g.WorstFirst(), []duplicates.Verdict{duplicates.Rerun})
}

// Page draws the whole page.
func (v Duplicates) Page(l Layout) templ.Component { return duplicateList(l, v) }

// filtered reports whether the list leaves groups out.
func (v Duplicates) filtered() bool { return v.Verdict != "" || v.Name != "" }

// Duplicate is the content of the page of one group.
type Duplicate struct {
	DuplicateGroup
}

// Page draws the whole page.
func (v Duplicate) Page(l Layout) templ.Component { return duplicateGroup(l, v) }

// DuplicateRules is the content of the page of excluded fields.
type DuplicateRules struct {
	Rules []history.DuplicateRule
	Saved string // name of the task whose rule the visitor has just saved, empty if none
}

// Page draws the whole page.
func (v DuplicateRules) Page(l Layout) templ.Component { return duplicateRules(l, v) }

// maxPairs bounds the pairs on the page of a group; the API has more.
const maxPairs = 25

// maxNewest bounds the tasks listed there.
const maxNewest = 10

// verdictWords are what a page says of a verdict.
type verdictWords struct {
	Label string // of the pair
	Icon  string
	Tone  string // class of its colour
	Means string // one sentence
	// Change says how to avoid it, Settings which names to look up.
	Change   string
	Settings []string
}

func wordsOf(v duplicates.Verdict) verdictWords {
	switch v {
	case duplicates.Overlapping:
		return verdictWords{
			"Overlapping", "layers", "state-failure", "Two tasks with the same arguments ran at the same time.",
			"Take a lock on the call before the first effect: SET key processing NX EX seconds, for longer than the longest run. " +
				"The second task then skips its work.",
			[]string{"SET NX EX", "celery-once", "celery-singleton"},
		}
	case duplicates.Rerun:
		return verdictWords{
			"Run again", "repeat-2", "state-retry", "The call was made again after it had succeeded. Periodic tasks do this on purpose.",
			"Remember the call when it has succeeded, SET key completed EX seconds, and skip it while the key exists. " +
				"Exclude fields that differ although the call is the same, such as timestamps.",
			[]string{"completion_ttl"},
		}
	case duplicates.Redelivery:
		return verdictWords{
			"Redelivered", "inbox", "state-retry", "The broker delivered an attempt again after it had started.",
			"On Redis, raise visibility_timeout above the longest countdown and run time. On RabbitMQ, raise consumer_timeout above the " +
				"longest run time. Tasks with acks_late are redelivered when their worker dies: repeating them must be harmless.",
			[]string{"visibility_timeout", "consumer_timeout", "task_acks_late", "task_reject_on_worker_lost"},
		}
	case duplicates.Resend:
		return verdictWords{
			"Sent twice", "send", "state-retry", "One attempt was published twice under one ID.",
			"A client that gets no confirmation publishes again. Take a lock on the task ID or the call in the task, and look at the " +
				"retries of the publisher.",
			[]string{"task_publish_retry", "task_publish_retry_policy"},
		}
	case duplicates.Retry:
		return verdictWords{
			"Retried", "rotate-cw", "state-received", "The task raised an exception and was tried again, as it was told to.",
			"What an attempt does before it fails is done again by the next. Put effects after the steps that may fail, or make them " +
				"repeatable, and retry only errors that can pass.",
			[]string{"autoretry_for", "max_retries", "retry_backoff"},
		}
	case duplicates.Skipped:
		return verdictWords{
			"Skipped", "shield-check", "state-success", "A lock found the call running or completed, and the task did nothing.",
			"Nothing: the lock works. Many of these show that a client sends calls too often.", nil,
		}
	}
	return verdictWords{Label: string(v), Icon: "circle-dot", Tone: "state-custom"}
}

// Title is the name of the task, in words if it is not known.
func (g DuplicateGroup) Title() string { return cmp.Or(g.Name, "Tasks with unknown name") }

// duplicateRowID is the id of the row of a group.
func duplicateRowID(k history.DuplicateKey) string { return "d-" + k.String() }

// duplicatesSummary says what was compared.
func duplicatesSummary(s history.DuplicateStats) string {
	text := "None"
	if s.Groups > 0 {
		text = plural(s.Groups, "group", "groups") + " with " + plural(s.Grouped, "task", "tasks")
	}
	return text + " among " + plural(s.Tasks, "stored task", "stored tasks")
}

// DuplicatePath is the address of the page of a group, below the prefix.
func DuplicatePath(k history.DuplicateKey) string { return "/duplicates/" + url.PathEscape(k.String()) }

func (u URLs) duplicate(k history.DuplicateKey) templ.SafeURL { return u.path(DuplicatePath(k)) }

func (u URLs) duplicateJSON(k history.DuplicateKey) templ.SafeURL {
	return u.path("/api/v1" + DuplicatePath(k))
}

// duplicateTasks links to the tasks of a group.
func (u URLs) duplicateTasks(k history.DuplicateKey) templ.SafeURL {
	if !k.Call.Known() {
		return u.task(k.TaskID)
	}
	return u.tasksWhere("q", "dup:"+k.Call.String())
}

// exclude links to the form that excludes fields of a task.
func (u URLs) exclude(name string) templ.SafeURL {
	return u.path("/act/exclude?" + url.Values{"name": {name}}.Encode())
}

// pairAxis is the time axis of two runs.
func pairAxis(p duplicates.Pair) axis {
	first, last, open := int64(0), int64(0), false
	for _, r := range []duplicates.Run{p.First, p.Second} {
		for _, at := range []int64{r.SentAt, r.ReceivedAt, r.StartedAt, r.EndedAt} {
			if at != 0 && (first == 0 || at < first) {
				first = at
			}
			last = max(last, at)
		}
		open = open || r.EndedAt == 0 && r.StartedAt != 0
	}
	length := max(last-first, 1)
	if open { // leave room for what is still running
		length += length / 2
	}
	return axis{first: first, length: length}
}

// runSpans are what a lane shows of a run.
func runSpans(x axis, r duplicates.Run) []span {
	var list []span
	if r.ReceivedAt != 0 && r.SentAt != 0 {
		list = x.add(list, "queued", r.SentAt, r.ReceivedAt)
	}
	if r.StartedAt == 0 {
		from := cmp.Or(r.ReceivedAt, r.SentAt)
		return x.add(list, "reserved", from, cmp.Or(r.EndedAt, from))
	}
	if r.ReceivedAt != 0 {
		list = x.add(list, "reserved", r.ReceivedAt, r.StartedAt)
	}
	return x.add(list, "running", r.StartedAt, r.EndedAt)
}

// runWords say when a run was.
func runWords(r duplicates.Run) (label string, at int64) {
	switch {
	case r.StartedAt != 0:
		return "started", r.StartedAt
	case r.ReceivedAt != 0:
		return "received", r.ReceivedAt
	default:
		return "sent", r.SentAt
	}
}

// stateOf is the state that colours a lane: of a run that was only sent, PENDING.
func stateOf(r duplicates.Run) state.State { return cmp.Or(r.State, state.Pending) }

// newest are the newest tasks of the group.
func (g DuplicateGroup) newest() []state.Task { return g.Tasks[:min(len(g.Tasks), maxNewest)] }

// pairsShown says which pairs a page shows.
func pairsShown(g DuplicateGroup) string {
	text := "The newest " + plural(min(len(g.Pairs), maxPairs), "pair", "pairs")
	if g.Partial {
		return text + ", among the newest " + number(len(g.Tasks)) + " of " + plural(g.N, "task", "tasks") + "."
	}
	return text + " of " + number(len(g.Pairs)) + "."
}

// verdictLabels names verdicts.
func verdictLabels(list []duplicates.Verdict) string {
	labels := make([]string, len(list))
	for i, v := range list {
		labels[i] = wordsOf(v).Label
	}
	return "also " + strings.ToLower(strings.Join(labels, ", "))
}

// ruleRowID is the id of the row of a rule. Names may hold anything, ids of elements no spaces.
func ruleRowID(name string) string { return "r-" + url.QueryEscape(name) }

// duplicatesOf links to the groups of a task.
func (u URLs) duplicatesOf(name string) templ.SafeURL {
	return u.path("/duplicates?" + url.Values{"name": {name}}.Encode())
}

// sampleCall is what counts of the arguments of a group.
func sampleCall(s command.DuplicateRuleSample) string {
	switch {
	case s.Args == "" || s.Args == "[]":
		return s.Kwargs
	case s.Kwargs == "" || s.Kwargs == "{}":
		return s.Args
	default:
		return s.Args + " " + s.Kwargs
	}
}

// sameCall says how many other tasks are in the group of a task.
func sameCall(g view.DuplicateGroup) string {
	if g.N <= 1 {
		return "Repeats its own work"
	}
	return plural(g.N-1, "other task", "other tasks") + " with these arguments"
}

// verdictsOf are the verdicts on the runs of one task of a group, the worst first; those on all if it was not compared.
func verdictsOf(g view.DuplicateGroup, id string) []duplicates.Verdict {
	found := map[duplicates.Verdict]bool{}
	for _, p := range g.Pairs {
		if p.First.TaskID == id || p.Second.TaskID == id {
			found[p.Verdict] = true
		}
	}
	if len(found) == 0 && g.Partial {
		return g.WorstFirst()
	}
	var list []duplicates.Verdict
	for _, v := range duplicates.WorstFirst() {
		if found[v] {
			list = append(list, v)
		}
	}
	return list
}

// duplicateKey names the group of a task.
func duplicateKey(t state.Task) history.DuplicateKey {
	if t.CallID.Known() {
		return history.DuplicateKey{Call: t.CallID}
	}
	return history.DuplicateKey{TaskID: t.ID}
}

// repeatWords say how a task repeats work, empty if it does not; redeliveries have a mark of their own, and retries none.
func repeatWords(t state.Task) string {
	marks := (t.Duplicates | t.OwnDuplicates()) &^ (state.Redelivery | state.Retrial)
	var labels []string
	for _, v := range duplicates.WorstFirst() {
		if marks&v.Mark() != 0 {
			labels = append(labels, strings.ToLower(wordsOf(v).Label))
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return "Duplicate: " + strings.Join(labels, ", ")
}
