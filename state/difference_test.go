package state_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/state"
)

// tell makes events of task a out of words such as received, w2:received1 (on another worker, of another
// attempt) or progress, a second apart. All processes share one clock, as all events arrive in order.
func tell(story string) []state.Event {
	kinds := map[string]state.Kind{
		"sent": state.TaskSent, "received": state.TaskReceived, "started": state.TaskStarted, "succeeded": state.TaskSucceeded,
		"failed": state.TaskFailed, "rejected": state.TaskRejected, "revoked": state.TaskRevoked, "retried": state.TaskRetried,
	}
	var events []state.Event
	for i, word := range strings.Fields(story) {
		host, word, other := strings.Cut(word, ":")
		if !other {
			host, word = "w1", host
		}
		subject := strings.TrimRight(word, "0123456789")
		attempt, _ := strconv.ParseInt(word[len(subject):], 10, 64)
		hollow := subject == "hollow" // what gevent workers send after they have terminated a task
		if hollow {
			subject = "succeeded"
		}
		kind, known := kinds[subject]
		if !known {
			kind = state.TaskCustom
		}
		e := retry(ev(kind, "a", host, 10, float64(i+1)), attempt)
		e.Subject = subject
		if hollow {
			e.Null = state.FieldResult | state.FieldRuntime
			e.Present |= e.Null
		}
		if kind == state.TaskFailed || kind == state.TaskRetried {
			e.Exception, e.Present = word, e.Present|state.FieldException
		}
		if e.Present&state.FieldArgs != 0 {
			e.Args = "of " + subject + strconv.FormatInt(attempt, 10)
		}
		events = append(events, e)
	}
	return events
}

// TestEveryDifferenceFromCelery lists where the two rule sets part on events that arrive in order, all on
// purpose. TestNothingElseDiffersFromCelery looks for others.
func TestEveryDifferenceFromCelery(t *testing.T) {
	t.Parallel()
	show := func(rules state.Rules, story string) string {
		task := mustTask(t, apply(state.New(state.Options{Rules: rules}), tell(story)...), "a")
		words := []string{string(task.State)}
		for _, field := range []*string{task.Exception, task.Args} {
			if field != nil {
				words = append(words, *field)
			}
		}
		return strings.Join(words, ", ")
	}
	for name, tc := range map[string]struct{ story, celery, causal string }{
		"a redelivered task runs again":                  {"received started succeeded received", "SUCCESS, of received0", "RECEIVED, of received0"},
		"also before its end":                            {"received started received", "STARTED, of received0", "RECEIVED, of received0"},
		"also elsewhere":                                 {"received started w2:received", "STARTED, of received0", "RECEIVED, of received0"},
		"a terminated task that gevent says succeeded":   {"received started revoked hollow", "SUCCESS, of received0", "REVOKED, of received0"},
		"in any order":                                   {"received started hollow revoked", "SUCCESS, of received0", "REVOKED, of received0"},
		"a revocation outranks custom states":            {"received started progress revoked", "PROGRESS, of received0", "REVOKED, of received0"},
		"before or after":                                {"received revoked progress", "PROGRESS, of received0", "REVOKED, of received0"},
		"a rejection too":                                {"received started progress rejected", "PROGRESS, of received0", "REJECTED, of received0"},
		"before or after, too":                           {"rejected progress", "PROGRESS", "REJECTED"},
		"a rejection ends what was received":             {"received rejected", "RECEIVED, of received0", "REJECTED, of received0"},
		"and what was started":                           {"received started rejected", "STARTED, of received0", "REJECTED, of received0"},
		"a start does not undo it":                       {"rejected started", "STARTED", "REJECTED"},
		"a success is no retry":                          {"received started succeeded retried", "RETRY, retried, of received0", "SUCCESS, retried, of received0"},
		"a failure is no retry":                          {"received started failed retried", "RETRY, retried, of received0", "FAILURE, failed, of received0"},
		"a start does not undo a retry":                  {"received retried started", "STARTED, retried, of received0", "RETRY, retried, of received0"},
		"nor does a custom event":                        {"received started retried progress", "PROGRESS, retried, of received0", "RETRY, retried, of received0"},
		"nor a rejection":                                {"received started retried rejected", "REJECTED, retried, of received0", "RETRY, retried, of received0"},
		"a retry that is only sent still waits":          {"received started retried sent1", "PENDING, retried, of sent1", "RETRY, retried, of received0"},
		"a retry reported late is of the attempt before": {"received started received1 retried", "RETRY, retried, of received1", "RECEIVED, of received1"},
		"fields of an old attempt stay there":            {"received started retried received1 started1", "STARTED, retried, of received1", "STARTED, of received1"},
		"the next attempt is revoked, not the last":      {"received started retried w2:revoked", "REVOKED, retried, of received0", "REVOKED, of received0"},
		"a late task-sent is not better informed":        {"received started sent", "STARTED, of sent0", "STARTED, of received0"},
		"a repeated failure fills, the first one stands": {"failed succeeded failed", "SUCCESS, failed", "SUCCESS, failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := show(state.Celery, tc.story); got != tc.celery {
				t.Errorf("celery rules: %s, want %s", got, tc.celery)
			}
			if got := show(state.Causal, tc.story); got != tc.causal {
				t.Errorf("causal rules: %s, want %s", got, tc.causal)
			}
		})
	}
}

// TestNothingElseDiffersFromCelery tries every story of up to four events, or five, of one attempt on one worker.
func TestNothingElseDiffersFromCelery(t *testing.T) {
	t.Parallel()
	words := []string{"received", "started", "succeeded", "failed", "rejected", "revoked", "retried", "progress"}
	rules := []*state.Cluster{state.New(state.Options{Rules: state.Celery}), state.New(state.Options{})}
	n, length := int64(0), 4
	if testenv.Thorough() {
		length = 5
	}
	for story := range stories(words, length) {
		n++
		id := strings.Join(story, " ")
		for _, e := range tell(id) {
			e.ID, e.Clock, e.Micros = id, e.Clock+n*100, e.Micros+n*10_000_000
			apply(rules[0], e)
			apply(rules[1], e)
		}
		celery, causal := mustTask(t, rules[0], id).State, mustTask(t, rules[1], id).State
		redelivered, tried := slices.Contains(story[1:], "received"), slices.Contains(story, "retried")
		if want := expected(story); causal != want && (!redelivered || !tried) { // which of them was tried again?
			t.Errorf("%v is %s, want %s", story, causal, want)
		}
		if celery == causal {
			continue
		}
		if difference(story) == "" {
			t.Errorf("%v: celery rules %s, causal %s: not a listed difference", story, celery, causal)
		}
	}
}

// stories yields every sequence of up to n words.
func stories(words []string, n int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		var extend func(story []string) bool
		extend = func(story []string) bool {
			if len(story) > 0 && !yield(story) {
				return false
			}
			for _, w := range words {
				if len(story) < n && !extend(append(slices.Clone(story), w)) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}

// expected is the state that the causal rules promise: of the newest execution, which the last task-received
// began, by its strongest event; or revoked, where that came after a retry.
func expected(story []string) state.State {
	for i, word := range slices.Backward(story) {
		if word == "received" {
			story = story[i:]
			break
		}
	}
	has := func(word string) bool { return slices.Contains(story, word) }
	if i := slices.Index(story, "retried"); i >= 0 && slices.Contains(story[i:], "revoked") && !has("succeeded") && !has("failed") {
		return state.Revoked
	}
	for _, s := range []struct {
		word  string
		state state.State
	}{
		{"succeeded", state.Success},
		{"failed", state.Failure},
		{"retried", state.Retry},
		{"revoked", state.Revoked},
		{"rejected", state.Rejected},
		{"progress", "PROGRESS"},
		{"started", state.Started},
	} {
		if has(s.word) {
			return s.state
		}
	}
	return state.Received
}

// difference names the class of TestEveryDifferenceFromCelery that lets a story end differently.
func difference(story []string) string {
	at := func(word string) int { return slices.Index(story, word) }
	after := func(i int, words ...string) bool {
		return i >= 0 && slices.ContainsFunc(story[i+1:], func(w string) bool { return slices.Contains(words, w) })
	}
	switch {
	case slices.Contains(story[1:], "received"):
		return "redelivered"
	case after(at("succeeded"), "retried"), after(at("failed"), "retried"):
		return "retried after its end"
	case after(at("retried"), "started", "progress", "rejected", "revoked"):
		return "gone on after its retry"
	case at("rejected") >= 0:
		return "rejected"
	case at("revoked") >= 0 && at("progress") >= 0:
		return "revoked in a custom state"
	}
	return ""
}
