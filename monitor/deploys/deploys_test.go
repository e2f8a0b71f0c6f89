package deploys_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func after(d time.Duration, worker string) state.Restart {
	return state.Restart{Worker: worker, At: noon.Add(d).UnixMicro()}
}

func TestRestartsThatFollowEachOtherAreOneMark(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		restarts []state.Restart
		want     []string
	}{
		"none":                    {nil, nil},
		"one":                     {[]state.Restart{after(0, "a")}, []string{"12:00:00 a restarted"}},
		"one after another":       {[]state.Restart{after(0, "a"), after(50*time.Second, "b"), after(100*time.Second, "c")}, []string{"12:00:00 3 workers restarted"}},
		"far apart":               {[]state.Restart{after(0, "a"), after(2*time.Minute, "b")}, []string{"12:00:00 a restarted", "12:02:00 b restarted"}},
		"one that crashes often":  {[]state.Restart{after(0, "a"), after(30*time.Second, "a")}, []string{"12:00:00 a restarted 2 times"}},
		"some twice":              {[]state.Restart{after(0, "a"), after(0, "b"), after(30*time.Second, "a")}, []string{"12:00:00 2 workers restarted"}},
		"one that never succeeds": {crashes(30), []string{"12:00:00 a restarted 21 times", "12:10:30 a restarted 9 times"}},
	} {
		var got []string
		for _, m := range deploys.Restarts(tt.restarts) {
			got = append(got, m.At.Format("15:04:05 ")+m.Label())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// crashes are n restarts of a worker, 30 s apart.
func crashes(n int) []state.Restart {
	var list []state.Restart
	for i := range n {
		list = append(list, after(time.Duration(i)*30*time.Second, "a"))
	}
	return list
}

func mark(kind deploys.Kind, d time.Duration, text string) deploys.Mark {
	return deploys.Mark{Mark: history.Mark{At: noon.Add(d), Text: text}, Kind: kind}
}

func TestWhatWasBefore(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	list := []deploys.Mark{
		mark(deploys.Deploy, -30*hour, "v1"), mark(deploys.Deploy, -3*hour, "v2"), mark(deploys.Restart, -2*hour, "r2"),
		mark(deploys.Restart, -hour, "r3"), mark(deploys.Deploy, hour, "v4"), mark(deploys.Deploy, 2*hour, "v5"),
	}
	for name, tt := range map[string]struct {
		at   time.Duration
		want []string
	}{
		"a restart, and the deploy before it": {0, []string{"r3", "v2"}},
		"a deploy alone":                      {90 * time.Minute, []string{"v4"}},
		"at the very moment":                  {hour, []string{"v4"}},
		"no deploy in the day before":         {-4 * hour, nil},
		"long after all":                      {72 * hour, nil},
		"before all":                          {-72 * hour, nil},
		"a deploy of the same day":            {-30*hour + time.Second, []string{"v1"}},
	} {
		var got []string
		for _, m := range deploys.Before(list, noon.Add(tt.at)) {
			got = append(got, m.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMarksAreChecked(t *testing.T) {
	t.Parallel()
	good := history.Mark{Text: " v2\n 3 ", Link: "https://ci.example.com/1", Service: "shop", Version: "2.3"}
	m, err := deploys.Check(good, noon)
	if err != nil || m.Text != "v2 3" || !m.At.Equal(noon) {
		t.Errorf("Check = %+v, %v, want its text with single spaces, at noon", m, err)
	}
	for field, wrong := range map[string]history.Mark{
		"text":    {Text: strings.Repeat("é", deploys.MaxText+1)},
		"service": {Text: "a", Service: "a\x00b"},
		"version": {Text: "a", Version: "a\xff"},
		"link":    {Text: "a", Link: "javascript:alert(1)"},
		"at":      {Text: "a", At: noon.Add(time.Hour)},
	} {
		_, err := deploys.Check(wrong, noon)
		if e, ok := errors.AsType[*deploys.Error](err); !ok || e.Field != field {
			t.Errorf("Check(%+v) error = %v, want one about %s", wrong, err, field)
		}
	}
	for _, text := range []string{"", " \t"} {
		if _, err := deploys.Check(history.Mark{Text: text}, noon); err == nil {
			t.Errorf("Check of the text %q succeeds", text)
		}
	}
}
