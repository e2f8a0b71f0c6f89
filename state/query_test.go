package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/state"
)

func TestPagesCoverEveryTaskOnceBothWays(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	var want []string
	for i := range 733 {
		id := fmt.Sprintf("t%03d", i)
		kind := state.TaskSucceeded
		if i%3 == 0 {
			kind = state.TaskFailed
		}
		apply(c, ev(kind, id, fmt.Sprint("w", i%2), 10, float64(i+1)))
		want = append(want, id)
	}
	slices.Reverse(want)
	for _, q := range []state.Query{{Limit: 7}, {Limit: 50, States: []state.State{state.Failure}}, {Limit: 11, Workers: []string{"w1"}}, {Limit: 9, Text: "T1"}} {
		var down, up []string
		var bottom *state.Position
		for page := c.Tasks(q); ; page = c.Tasks(q) {
			for _, task := range page.Tasks {
				down = append(down, task.ID)
			}
			if page.Older == nil {
				bottom = page.Newer
				for _, task := range slices.Backward(page.Tasks) {
					up = append(up, task.ID)
				}
				break
			}
			q.From = page.Older
		}
		for q.From, q.Newer = bottom, true; q.From != nil; {
			page := c.Tasks(q)
			for _, task := range slices.Backward(page.Tasks) {
				up = append(up, task.ID)
			}
			q.From = page.Newer
		}
		slices.Reverse(up)
		match := slices.DeleteFunc(slices.Clone(want), func(id string) bool {
			var n int
			_, _ = fmt.Sscanf(id, "t%d", &n)
			return q.States != nil && n%3 != 0 || q.Workers != nil && n%2 != 1 || q.Text != "" && !strings.HasPrefix(id, "t1")
		})
		if diff := cmp.Diff(match, down); diff != "" {
			t.Errorf("older pages of %+v (-want +got):\n%s", q, diff)
		}
		if diff := cmp.Diff(match, up); diff != "" {
			t.Errorf("newer pages of %+v (-want +got):\n%s", q, diff)
		}
	}
}

func TestTextFindsIDsNamesArgsAndExceptions(t *testing.T) {
	t.Parallel()
	failed := ev(state.TaskFailed, "f1", "w1", 10, 2)
	failed.Exception, failed.Present = "ConnectionError('db-7')", failed.Present|state.FieldException
	c := apply(state.New(state.Options{}), ev(state.TaskReceived, "r1", "w1", 10, 1), failed)
	for text, want := range map[string]string{"R1": "r1", "shop.PAY": "r1", "(1,": "r1", "db-7": "f1", "connectionerror": "f1", "nothing": ""} {
		var got []string
		for _, task := range c.Tasks(state.Query{Text: text}).Tasks {
			got = append(got, task.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("text %q finds %q, want %q", text, got, want)
		}
	}
}

func TestCountsFollowEveryChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		o := wild()
		o.SamePID = seed%2 == 0
		rules := []state.Rules{state.Causal, state.Celery}[seed/2%2]
		c := fold(t, rules, eventgen.Shuffle(seed, eventgen.New(seed, o).Events))
		got := c.Counts()
		byState, byWorker, byName := map[state.State]int{}, map[string]int{}, map[string]int{}
		orphaned, returned := 0, 0
		for _, task := range tasks(c) {
			byState[task.State]++
			if task.Worker != nil {
				byWorker[*task.Worker]++
			}
			if task.Name != nil {
				byName[*task.Name]++
			}
			if task.Orphaned {
				orphaned++
			}
			if task.Returned {
				returned++
			}
		}
		for _, s := range state.States() { // zero counts are left out by one and may be by the other
			if byState[s] != got.ByState[s] {
				t.Fatalf("seed %d: %d tasks in %s, counted %d", seed, byState[s], s, got.ByState[s])
			}
		}
		if diff := cmp.Diff(byWorker, got.ByWorker); diff != "" {
			t.Fatalf("seed %d: by worker (-tasks +counts):\n%s", seed, diff)
		}
		if diff := cmp.Diff(byName, got.ByName); diff != "" {
			t.Fatalf("seed %d: by name (-tasks +counts):\n%s", seed, diff)
		}
		if orphaned != got.Orphaned || returned != got.Returned {
			t.Fatalf("seed %d: %d tasks orphaned and %d returned, counted %d and %d", seed, orphaned, returned, got.Orphaned, got.Returned)
		}
	}
}
