package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	helpLine   = regexp.MustCompile(`(?m)^# HELP (\S+) `)
	guideRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram)")
	familyName = regexp.MustCompile(`\b(?:flower|umbel|process|go)_[a-z_]+`)
)

// guideFamilies are the families that the guide lists.
func guideFamilies(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile("../../docs/guides/metrics.md")
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, m := range guideRow.FindAllSubmatch(text, -1) {
		names = append(names, string(m[1]))
	}
	slices.Sort(names)
	return names
}

func TestGuideListsEveryMetric(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo", "--otlp-endpoint", "http://127.0.0.1:1")
	want := slices.DeleteFunc(guideFamilies(t), func(name string) bool { return name == "umbel_node_lag_seconds" }) // of several Umbels
	eventually(t, timeout, func() error {                                                                           // rates are known after two polls
		_, body := d.fetch(t, "metrics")
		got := map[string]bool{}
		for _, m := range helpLine.FindAllSubmatch(body, -1) {
			got[string(m[1])] = true
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			return fmt.Errorf("families (-in the guide +served):\n%s", diff)
		}
		return nil
	})
}

// grafanaQueries are the expressions of the dashboard, with its variables replaced, by the title of their panel.
func grafanaQueries(tb testing.TB) map[string][]string {
	tb.Helper()
	text, err := os.ReadFile("../../deploy/grafana/umbel.json")
	if err != nil {
		tb.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		tb.Fatal(err)
	}
	all := make(map[string][]string)
	add := func(title, query string) {
		query = strings.NewReplacer("$__rate_interval", "1m", "$task", ".*", "$queue", ".*", "$worker", ".*", "$job", ".*").Replace(query)
		if strings.Contains(query, "$") {
			tb.Errorf("%s: unknown variable in %s", title, query)
		}
		all[title] = append(all[title], query)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			add(p.Title, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if v.Type == "query" {
			family, ok := strings.CutPrefix(v.Definition, "label_values(")
			if family, _, _ = strings.Cut(family, ","); !ok || family == "" {
				tb.Errorf("variable %s is %q", v.Name, v.Definition)
			}
			add("variable "+v.Name, family)
		}
	}
	return all
}

func TestDashboardAndAlertsUseFamiliesThatExist(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, name := range guideFamilies(t) {
		for _, suffix := range []string{"", "_bucket", "_count", "_sum"} {
			known[name+suffix] = true
		}
	}
	rules, err := os.ReadFile("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	check := func(where, text string) {
		for _, name := range familyName.FindAllString(text, -1) {
			if uses++; !known[name] {
				t.Errorf("%s: no metric is named %s", where, name)
			}
		}
	}
	for title, queries := range grafanaQueries(t) {
		check(title, strings.Join(queries, "\n"))
	}
	check("rules.yml", string(rules))
	if uses < 40 {
		t.Errorf("%d uses of families found, want more", uses)
	}
}
