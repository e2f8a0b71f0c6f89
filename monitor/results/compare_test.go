package results_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := noon.Add
	succeeded := state.Task{State: state.Success}
	succeeded.SucceededAt = noon.UnixMicro()
	tests := map[string]struct {
		task   state.Task
		stored results.Result
		want   []string
	}{
		"the same":             {succeeded, results.Result{Status: "SUCCESS", DoneAt: at(time.Second)}, nil},
		"no date":              {succeeded, results.Result{Status: "SUCCESS"}, nil},
		"a minute is nothing":  {succeeded, results.Result{Status: "SUCCESS", DoneAt: at(-time.Minute)}, nil},
		"both on their way":    {state.Task{State: state.Started}, results.Result{Status: "PROGRESS"}, nil},
		"one only received":    {state.Task{State: state.Received}, results.Result{Status: "STARTED"}, nil},
		"naive but right":      {succeeded, results.Result{Status: "SUCCESS", DoneAt: at(time.Second), NaiveTime: true}, nil},
		"other ends":           {succeeded, results.Result{Status: "FAILURE"}, []string{"Events say SUCCESS, the backend says FAILURE."}},
		"backend behind":       {succeeded, results.Result{Status: "PROGRESS"}, []string{"Events say SUCCESS, the backend says PROGRESS."}},
		"events behind":        {state.Task{State: state.Started}, results.Result{Status: "FAILURE"}, []string{"Events say STARTED, the backend says FAILURE."}},
		"later":                {succeeded, results.Result{Status: "SUCCESS", DoneAt: at(150 * time.Second)}, []string{"By the backend it ended 2m30s later than by its events."}},
		"a zone that is given": {succeeded, results.Result{Status: "SUCCESS", DoneAt: at(-time.Hour)}, []string{"By the backend it ended 1h0m0s earlier than by its events."}},
		"local time": {
			succeeded,
			results.Result{Status: "SUCCESS", DoneAt: at(330*time.Minute + time.Second), NaiveTime: true},
			[]string{"By the backend it ended 5h30m1s later than by its events. The backend's time has no zone: it may be local time, UTC+5:30."},
		},
		"local time in the west": {
			succeeded,
			results.Result{Status: "SUCCESS", DoneAt: at(-3 * time.Hour), NaiveTime: true},
			[]string{"By the backend it ended 3h0m0s earlier than by its events. The backend's time has no zone: it may be local time, UTC−3."},
		},
		"naive, in no zone": {
			succeeded,
			results.Result{Status: "SUCCESS", DoneAt: at(26 * time.Hour), NaiveTime: true},
			[]string{"By the backend it ended 26h0m0s later than by its events."},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, results.Compare(&tt.task, tt.stored)); diff != "" {
				t.Errorf("disagreements (-want +got):\n%s", diff)
			}
		})
	}
}
