package query_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

func TestFailureIsTheGroupOfAFailedTask(t *testing.T) {
	t.Parallel()
	task := func(s state.State, name, exception string) state.Task {
		return state.Task{State: s, Name: &name, Exception: &exception}
	}
	failed := task(state.Failure, "shop.add", "ValueError('no 7')")
	_, group := fingerprint.OfTask(&failed)
	q, err := query.Parse("failure:" + group.String())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		task state.Task
		want bool
	}{
		"itself":         {failed, true},
		"same bug":       {task(state.Failure, "shop.add", "ValueError('no 8')"), true},
		"another bug":    {task(state.Failure, "shop.add", "ValueError('no such')"), false},
		"another name":   {task(state.Failure, "shop.sub", "ValueError('no 7')"), false},
		"retried":        {task(state.Retry, "shop.add", "ValueError('no 7')"), false},
		"nothing known":  {state.Task{State: state.Failure}, false},
		"then succeeded": {task(state.Success, "shop.add", "ValueError('no 7')"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := q.Match(&tt.task, time.Time{}); got != tt.want {
				t.Errorf("%s matches: %v, want %v", q, got, tt.want)
			}
		})
	}
}
