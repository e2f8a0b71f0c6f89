package query_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

func TestParseDuplicates(t *testing.T) {
	t.Parallel()
	newest, most := history.DuplicatePosition{Newest: 7}, history.DuplicatePosition{Newest: 7, Tasks: 3}
	for raw, want := range map[string]query.Duplicates{
		"":                           {},
		"verdict=&name=+&sort=":      {},
		"verdict=overlapping&name=x": {Verdict: duplicates.Overlapping, Name: "x"},
		"sort=tasks&limit=7":         {Most: true, Limit: 7},
		"limit=50&cursor=" + query.EncodeDuplicate(newest, false): {After: &newest},
		"sort=tasks&cursor=" + query.EncodeDuplicate(most, true):  {Most: true, After: &most},
		"unknown=is ignored, as in all lists&verdict=skipped":     {Verdict: duplicates.Skipped},
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := query.ParseDuplicates(v)
		if err != nil {
			t.Errorf("ParseDuplicates(%q): %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseDuplicates(%q) (-want +got):\n%s", raw, diff)
		}
	}
}

func TestParseDuplicatesNamesTheWrongParameter(t *testing.T) {
	t.Parallel()
	newest := query.EncodeDuplicate(history.DuplicatePosition{Newest: 7}, false)
	most := query.EncodeDuplicate(history.DuplicatePosition{Newest: 7, Tasks: 3}, true)
	for raw, param := range map[string]string{
		"verdict=new":                           "verdict",
		"verdict=retry&verdict=resend":          "verdict",
		"name=" + strings.Repeat("x", 1_025):    "name",
		"sort=name":                             "sort",
		"limit=501":                             "limit",
		"cursor=x":                              "cursor",
		"cursor=" + most:                        "cursor", // of a list in another order
		"sort=tasks&cursor=" + newest:           "cursor",
		"cursor=" + newest[1:]:                  "cursor",
		"cursor=" + strings.Repeat("f", 16):     "cursor",
		"cursor=" + strings.ToUpper("a"+newest): "cursor",
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = query.ParseDuplicates(v)
		if wrong, ok := errors.AsType[*query.Error](err); !ok || wrong.Param != param || wrong.Message == "" {
			t.Errorf("ParseDuplicates(%q) = %#v, want an error of %s", raw, err, param)
		}
	}
}

func TestDuplicatesHaveOneSpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := query.Duplicates{
			Verdict: rapid.SampledFrom(append(duplicates.Verdicts(), "")).Draw(t, "verdict"),
			Name:    strings.TrimSpace(rapid.StringN(0, 30, 100).Draw(t, "name")),
			Most:    rapid.Bool().Draw(t, "most"),
			Limit:   rapid.IntRange(1, 49).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "later") {
			want.After = &history.DuplicatePosition{Newest: rapid.Int64Range(1, 1<<62).Draw(t, "newest")}
			if want.Most {
				want.After.Tasks = rapid.IntRange(1, 1<<31).Draw(t, "tasks")
			}
		}
		u, err := url.Parse(want.URL("/duplicates"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := query.ParseDuplicates(u.Query())
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s reads back as %+v, %v", u, got, err)
		}
	})
}

func TestDuplicatesRequest(t *testing.T) {
	t.Parallel()
	got := query.Duplicates{Verdict: duplicates.Rerun, Name: "x", Most: true}.Request()
	want := history.DuplicateRequest{Marks: duplicates.Rerun.Mark(), Name: "x", Most: true, Limit: 50}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}
