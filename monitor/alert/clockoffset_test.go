package alert_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/state"
)

// TestOnlyClocksThatAreSurelyOffFire judges bounds of offsets, in µs.
func TestOnlyClocksThatAreSurelyOffFire(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		offset state.ClockOffset
		away   bool // the worker's heartbeats do not come
		want   string
	}{
		"ahead":       {state.ClockOffset{Low: 3_600_000, High: 3_712_000}, false, "The clock of w is at least 3.6s ahead, and at most 3.712s."},
		"behind":      {state.ClockOffset{Low: -3_600_500_000, High: -3_600_000_000}, false, "The clock of w is at least 1h0m0s behind, and at most 1h0m0.5s."},
		"one bound":   {state.ClockOffset{Low: 1_000_001, High: state.OpenHigh}, false, "The clock of w is at least 1s ahead."},
		"other bound": {state.ClockOffset{Low: state.OpenLow, High: -2_000_000}, false, "The clock of w is at least 2s behind."},
		"at the edge": {state.ClockOffset{Low: 1_000_000, High: 5_000_000}, false, ""},
		"perhaps":     {state.ClockOffset{Low: 900_000, High: 5_000_000}, false, ""},
		"right":       {state.ClockOffset{Low: -20_000, High: 30_000}, false, ""},
		"unknown":     {state.ClockOffset{Low: state.OpenLow, High: state.OpenHigh}, false, ""},
		"half known":  {state.ClockOffset{Low: state.OpenLow, High: 5_000_000}, false, ""},
		"away":        {state.ClockOffset{Low: 3_600_000, High: 3_700_000}, true, ""},
	} {
		f, err := alert.NewFold(alert.Rule{Kind: alert.ClockOffset})
		if err != nil {
			t.Fatal(err)
		}
		began, _ := f.Step(&alert.Record{From: 1, At: 60_000_000, Workers: []alert.Worker{{Name: "w", Alive: !test.away, Offset: test.offset}}})
		got := ""
		if len(began) > 0 {
			got = began[0].Evidence.Text
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
