package api_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/api"
)

func TestValues(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value any
		want  string
	}{
		"time":               {api.Time(start), `"2026-11-21T00:00:00.000000Z"`},
		"time with µs":       {api.Time(start + 120_304), `"2026-11-21T00:00:00.120304Z"`},
		"time before 1970":   {api.Time(-1), `"1969-12-31T23:59:59.999999Z"`},
		"no time":            {api.Time(0), `null`},
		"time beyond bounds": {api.Time(math.MaxInt64), `null`},
		"time before bounds": {api.Time(math.MinInt64), `null`},
		"integer":            {api.Int(-42), `-42`},
		"greatest number":    {api.Int(1 << 53), `9007199254740992`},
		"least string":       {api.Int(1<<53 + 1), `"9007199254740993"`},
		"negative string":    {api.Int(math.MinInt64), `"-9223372036854775808"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tt.value)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("JSON = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFromTaskUnknownIsNull(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(-1), math.NaN()
	body, err := json.Marshal(api.FromTask(state.Task{
		ID: "x", State: state.Pending, RuntimeSeconds: &nan, WaitSeconds: &inf,
		Executions: []state.Execution{{RuntimeSeconds: &nan, State: state.Started}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got := decode(t, string(body))
	execution := got["executions"].([]any)[0].(map[string]any)
	delete(got, "executions")
	for name, v := range got {
		switch name {
		case "id", "state", "children", "redelivered", "orphaned", "returned", "truncated":
			if v == nil {
				t.Errorf("%s is null", name)
			}
		default:
			if v != nil {
				t.Errorf("%s = %v, want null", name, v)
			}
		}
	}
	if execution["worker"] != nil || execution["pid"] != nil || execution["runtime_seconds"] != nil {
		t.Errorf("unknown fields of an execution are not null: %v", execution)
	}
}

func TestFromTaskTimesOfCelery(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"2026-11-21T00:49:15.467538+00:00": "2026-11-21T00:49:15.467538Z",
		"2026-11-21T00:49:15Z":             "2026-11-21T00:49:15.000000Z",
		"2026-11-21T00:49:15":              "2026-11-21T00:49:15.000000Z",
		"2026-11-21T00:49:15.5":            "2026-11-21T00:49:15.500000Z",
		"2026-11-21 00:49:15+05:30":        "2026-11-20T19:19:15.000000Z",
		"60":                               "60",
		"":                                 "",
		"tomorrow":                         "tomorrow",
	} {
		got := api.FromTask(state.Task{ETA: &sent, Expires: &sent})
		if *got.ETA != want || *got.Expires != want {
			t.Errorf("eta, expires of %q = %q, %q, want %q", sent, *got.ETA, *got.Expires, want)
		}
	}
}

func TestFromWorkerUnknownIsNull(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(api.FromWorker(state.Worker{
		Name: "w", Status: state.Late, Load: &[3]float64{0, math.NaN(), 0}, FreqSeconds: math.Inf(1),
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, `{
		"name": "w", "pid": null, "status": "late", "last_heartbeat_at": null, "freq_seconds": null, "clock_offset_seconds": null, "clock_offset_low_seconds": null, "clock_offset_high_seconds": null, "clock_set_at": null, "active": null,
		"processed": null, "load": null, "software": null, "version": null, "system": null, "reported_at": null, "memory_bytes": null, "failure_share": null, "restarts": 0, "clock": null,
		"queues": null, "pool": null
	}`)
	if diff := cmp.Diff(want, decode(t, string(body))); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
}
