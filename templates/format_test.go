package templates_test

import (
	"html"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// cell is the text of the first cell with that label in a list of one row.
func cell(t *testing.T, v templates.View, label string) string {
	t.Helper()
	row := recorded(t, v).Lists[0].Rows[0].HTML
	m := regexp.MustCompile(`(?s)data-label="` + label + `"[^>]*>(.*?)</td>`).FindStringSubmatch(row)
	if m == nil {
		t.Fatalf("no cell %q in %s", label, row)
	}
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))
	return strings.ReplaceAll(strings.TrimSpace(text), "\u202f", "_")
}

func TestDurations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		seconds *float64
		want    string
	}{
		"unknown":       {nil, "—"},
		"none":          {new(0.0), "0_ms"},
		"microseconds":  {new(0.00002), "0.1_ms"},
		"milliseconds":  {new(0.3124), "312_ms"},
		"nearly one":    {new(0.9996), "1.0_s"},
		"seconds":       {new(4.24), "4.2_s"},
		"nearly ten":    {new(9.96), "10_s"},
		"nearly minute": {new(59.6), "1_m"},
		"minutes":       {new(190.0), "3_m 10_s"},
		"hours":         {new(7500.0), "2_h 5_m"},
		"days":          {new(273_600.0), "3_d 4_h"},
		"years":         {new(1e9), "11_574_d 1_h"},
		"backwards":     {new(-0.012), "−12_ms"},
		"absurd":        {new(1e300), "—"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := templates.Tasks{Tasks: []state.Task{{ID: "a", WaitSeconds: tc.seconds}}}
			if got := cell(t, v, "Wait"); got != tc.want {
				t.Errorf("wait = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		n    *int64
		want string
	}{
		"unknown":  {nil, "—"},
		"zero":     {new(int64(0)), "0"},
		"hundreds": {new(int64(999)), "999"},
		"thousand": {new(int64(1000)), "1_000"},
		"most":     {new(int64(1<<63 - 1)), "9_223_372_036_854_775_807"},
		"negative": {new(int64(-1234)), "−1_234"},
		"least":    {new(int64(-1 << 63)), "−9_223_372_036_854_775_808"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := templates.Workers{Workers: []workers.Row{{Worker: state.Worker{Name: "a", Processed: tc.n}}}}
			if got := cell(t, v, "Failed"); got != "—"+tc.want+" processed" {
				t.Errorf("processed = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestArgumentsAreShownOnOneShortLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args, kwargs *string
		want         string
	}{
		"unknown":         {nil, nil, "—"},
		"positional":      {new("(1, 2)"), new("{}"), "(1, 2)"},
		"named":           {new("()"), new("{'a': 1}"), "{'a': 1}"},
		"both":            {new("(1,)"), new("{'a': 1}"), "(1,) {'a': 1}"},
		"only named sent": {nil, new("{'a': 1}"), "{'a': 1}"},
		"lines":           {new("('a\n\n  b',)"), nil, "('a b',)"},
		"long":            {new(strings.Repeat("é", 1000)), nil, strings.Repeat("é", 120) + "…"},
		"broken UTF-8":    {new("(\xff\xfe)"), nil, "(\xff\xfe)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := recorded(t, templates.Tasks{Tasks: []state.Task{{ID: "a", Args: tc.args, Kwargs: tc.kwargs}}}).Lists[0].Rows[0].HTML
			m := regexp.MustCompile(`(?s)class="c-args">(.*?)</td>`).FindStringSubmatch(row)
			got := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRatiosDoNotRoundToAllOrNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		succeeded, failed float64
		want              string
	}{
		"no tasks finished": {0, 0, "—"},
		"all":               {10, 0, "100_%"},
		"none":              {0, 10, "0_%"},
		"nearly all":        {99_999, 1, "99.9_%"},
		"nearly none":       {1, 99_999, "0.1_%"},
		"half":              {1, 1, "50_%"},
		"a third":           {1, 2, "33.3_%"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := templates.Overview{Rates: view.Rates{Series: view.Series{
				Succeeded: []float64{tc.succeeded}, Failed: []float64{tc.failed},
			}}}
			tile := region(t, v, "tiles")
			m := regexp.MustCompile(`(?s)Succeeding</h2><p class="figure">(.*?)</p>`).FindStringSubmatch(tile)
			if m == nil {
				t.Fatalf("no ratio in %s", tile)
			}
			got := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")
			if got = strings.ReplaceAll(got, "\u202f", "_"); got != tc.want {
				t.Errorf("ratio = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := page(t, s)
			for _, e := range elements(whole) {
				if strings.HasPrefix(e.tag, "<img") || e.tag == "<script>" {
					t.Errorf("text became the tag %s", e.tag)
				}
			}
			if size, most := len(whole), 200_000; size > most {
				t.Errorf("page of %d bytes, want at most %d", size, most)
			}
		})
	}
	if !strings.Contains(html.UnescapeString(page(t, scenes()["task-hostile"])), evil) {
		t.Error("the page does not show the hostile text at all")
	}
}

func TestChartsSurviveAbsurdSeries(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for name, series := range map[string][]float64{
		"empty": nil, "zero": {0, 0}, "negative": {-1, 2}, "infinite": {inf, 1}, "not a number": {math.NaN()}, "tiny": {1e-300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := templates.Overview{Rates: view.Rates{
				Succeeded: inf, Series: view.Series{Succeeded: series, Failed: series, Retried: series, Received: series},
			}}
			for _, e := range elements(region(t, v, "tiles")) {
				if d := e.attributes["d"]; strings.ContainsAny(d, "NI") {
					t.Errorf("path %q is not made of numbers", d)
				}
			}
		})
	}
}

func TestStateBarFillsItsLength(t *testing.T) {
	t.Parallel()
	for name, counts := range map[string]map[state.State]int{
		"one":   {state.Success: 7},
		"rare":  {state.Success: 1_000_000, state.Failure: 1, state.Retry: 1, "A": 1, "B": 2},
		"equal": {state.Success: 1, state.Failure: 1, state.Retry: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := templates.Overview{Counts: state.Counts{ByState: counts}}
			bar := region(t, v, "states")
			got := map[string]int{}
			length := 0
			for _, m := range regexp.MustCompile(`<rect class="([^"]+)" x="(\d+)" y="0" width="(\d+)"`).FindAllStringSubmatch(bar, -1) {
				if x := atoi(t, m[2]); x != length {
					t.Errorf("%s begins at %d, want %d", m[1], x, length)
				}
				width := atoi(t, m[3])
				if width < 5 {
					t.Errorf("%s is %d wide: too little to be seen", m[1], width)
				}
				length += width
				got[m[1]]++
			}
			if length != 1000 {
				t.Errorf("bar is %d long, want 1000 (%v)", length, got)
			}
		})
	}
}
