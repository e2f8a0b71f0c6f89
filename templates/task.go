package templates

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// Bounds of what one page shows of one task; the API has all.
const (
	maxShown  = 16_384 // bytes of one text
	maxEvents = 200
)

// Task is the content of the page of one task.
type Task struct {
	Task     state.Task
	Waited   *state.Elapsed           // bounds of how long it waited, nil if there are none
	Root     *RelatedTask             // nil if the task is its own root or knows none
	Parent   *RelatedTask             // nil if the task knows none
	Family   Family                   // what surrounds it in its workflow
	Events   []state.TaskEvent        // by stamp
	Alike    *history.FailureGroup    // the group that it is in, nil if it has not failed
	Repeats  *view.DuplicateGroup     // the group of duplicates that it is in, nil if it is in none
	Actions  []TaskAction             // empty if nobody may act
	Retries  []Retry                  // newest first
	Commands []history.Command        // about it, newest first
	Effects  map[int64]command.Effect // of these, by ID
	Stored   *StoredResult            // nil if there is no result backend
	Outbox   *TaskOutbox              // nil if no application's outbox tells of it
	Similar  Similar                  // the last tasks of its name

	SpaceTime SpaceTime

	Incomplete bool // the history could not be read
}

// RelatedTask is a task that another one refers to. State is empty and Name nil if it is not held.
type RelatedTask struct {
	ID    string
	Name  *string
	State state.State
}

// Retry is a task that retries the one of the page, with its state, which is empty if nothing is known of it yet.
type Retry struct {
	command.RetriedTask

	State state.State
}

// Page draws the whole page.
func (v Task) Page(l Layout) templ.Component { return task(l, v) }

// crumbs are the ancestors that are known, the root first.
func (v Task) crumbs() []RelatedTask {
	var list []RelatedTask
	if v.Root != nil && (v.Parent == nil || v.Root.ID != v.Parent.ID) {
		list = append(list, *v.Root)
	}
	if v.Parent != nil {
		list = append(list, *v.Parent)
	}
	return list
}

// failedBesides reports whether the task has not succeeded, and others of its name have ended.
func (v Task) failedBesides() bool {
	return v.Task.State.Final() && v.Task.State != state.Success && len(v.Similar.others()) > 0
}

// shortened reports whether Celery may have cut a repr: it marks the place with three dots.
func shortened(repr string) bool { return strings.Contains(repr, "...") }

// redeliveredAttempts are the attempts that were received again after they had begun.
func redeliveredAttempts(t state.Task) []int64 {
	var list []int64
	begun := map[int64]bool{}
	for i, e := range t.Executions {
		if i > 0 && t.Executions[i-1].Replaced {
			clear(begun)
		}
		if begun[e.Attempt] && !slices.Contains(list, e.Attempt) {
			list = append(list, e.Attempt)
		}
		begun[e.Attempt] = begun[e.Attempt] || e.State != state.Received
	}
	return list
}

// redeliveredWords names those attempts as people count them, from 1.
func redeliveredWords(t state.Task) string {
	var words []string
	for _, a := range redeliveredAttempts(t) {
		words = append(words, number(a+1))
	}
	switch len(words) {
	case 0:
		return "The broker delivered it"
	case 1:
		return "The broker delivered attempt " + words[0]
	default:
		return "The broker delivered attempts " + strings.Join(words, ", ")
	}
}

// labelled is a moment in the life of a task.
type labelled struct {
	Label  string
	Micros int64
	Why    string // why it may be unknown
}

// timesOf lists the moments that every task may have, and of the others those that it has.
func timesOf(t state.Task) []labelled {
	list := []labelled{
		{"Sent", t.SentAt, "No task-sent event"},
		{"Received", t.ReceivedAt, "No task-received event"},
		{"Started", t.StartedAt, "No task-started event"},
	}
	for _, l := range []labelled{
		{"Retried", t.RetriedAt, ""},
		{"Succeeded", t.SucceededAt, ""},
		{"Failed", t.FailedAt, ""},
		{"Revoked", t.RevokedAt, ""},
		{"Rejected", t.RejectedAt, ""},
	} {
		if l.Micros != 0 {
			list = append(list, l)
		}
	}
	return list
}

// firstTime is the first moment of the runs of a task, 0 if none is known.
func firstTime(t state.Task) int64 {
	for _, r := range runs(t) {
		if at := cmp.Or(r.ReceivedAt, r.StartedAt, r.EndedAt); at != 0 {
			return at
		}
	}
	return 0
}

// endLabel names the end of a run.
func endLabel(r run) string {
	switch r.State {
	case state.Success:
		return "Succeeded"
	case state.Failure:
		return "Failed"
	case state.Retry:
		return "Retried"
	case state.Revoked, state.Rejected:
		return stateWord(r.State)
	case state.Pending, state.Received, state.Started:
	}
	return "Ended"
}

// revokedBy is the newest command that revoked or terminated the task, nil if there is none.
func (v Task) revokedBy() *history.Command {
	if v.Task.Revocation == nil || v.Task.Revocation.Expired {
		return nil
	}
	for i, c := range v.Commands {
		if _, ok := v.Effects[c.ID]; ok {
			return &v.Commands[i]
		}
	}
	return nil
}

// revokedWords says why a task was revoked.
func revokedWords(t state.Task) string {
	switch r := t.Revocation; {
	case r.Expired:
		return "It expired before it was started."
	case r.Terminated:
		return "It was terminated" + withSignal(r.Signum) + " while it ran."
	case t.StartedAt == 0:
		return "It was revoked before it started."
	default:
		return "It was revoked while it ran."
	}
}

// withSignal names a signal by its number on Linux.
func withSignal(n int64) string {
	names := map[int64]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 9: "SIGKILL", 10: "SIGUSR1", 12: "SIGUSR2", 15: "SIGTERM"}
	switch name, known := names[n]; {
	case known:
		return " with " + name
	case n != 0:
		return " with signal " + number(n)
	default:
		return ""
	}
}

// lostTitle says in a few words why a task is lost.
func lostTitle(k state.Conclusion) string {
	switch k.Reason {
	case state.ReasonNotRunning:
		return "No longer running."
	case state.ReasonExpired:
		return "Expired without an event."
	case state.ReasonBackend:
		return "Finished without an event."
	default:
		return "Lost."
	}
}

// dismissedBy says who has dismissed a task.
func dismissedBy(t state.Task) string {
	return "dismissed by " + cmp.Or(t.Dismissed.Evidence, "an unknown user")
}

// sentenceOf makes a sentence of evidence.
func sentenceOf(s string) string {
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	if first, _, _ := strings.Cut(s, " "); strings.Contains(first, "@") { // a node name stays as it is
		return s + "."
	}
	return string(unicode.ToUpper(r)) + s[n:] + "."
}

func orphanReason(t state.Task) string {
	if t.OrphanReason == "" {
		return "the process running it exited"
	}
	return t.OrphanReason
}
