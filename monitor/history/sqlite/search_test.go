package sqlite_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/historytest"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	settle := func(t *testing.T, s history.Store) {
		t.Helper()
		if err := s.(*sqlite.DB).Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		historytest.Search(t, historytest.SearchFixture{
			Open: func(t *testing.T) history.Store { return openHistory(t, t.TempDir()) }, Index: settle,
		})
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		historytest.Search(t, historytest.SearchFixture{
			Open: func(t *testing.T) history.Store { return openHistory(t, sqlite.Memory) }, Index: settle,
		})
	})
	t.Run("in parts", func(t *testing.T) {
		t.Parallel()
		historytest.Search(t, historytest.SearchFixture{Open: func(t *testing.T) history.Store {
			d := openHistory(t, t.TempDir())
			d.LowerLimits()
			return d
		}, Index: settle, Bounded: true})
	})
}

func openHistory(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestHostileQueries asks what no visitor would. Every answer is the one of query.Match.
func TestHostileQueries(t *testing.T) {
	t.Parallel()
	d := openHistory(t, sqlite.Memory)
	tasks := historytest.Fill(t, d, 1, 25)
	if err := d.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"", "\"", `"""" AND NEAR(`, "a\x00b", "\x00", "\xff\xfe\xfd", "%_\\", "*", "***", "a*b*c*d*e*", "') OR 1=1 --",
		strings.Repeat("ab", 500), strings.Repeat("*x", 100), "\U0010FFFF\U0010FFFF\U0010FFFF", "ſſſ", "İİİ",
	}
	matches := []query.Match{query.Exact, query.Pattern, query.Contains, query.Range}
	for n, f := range append(query.Fields(), query.Any) {
		for i, text := range texts {
			match := matches[(n+i)%len(matches)] // each text is matched in each way, by some fields
			value := query.Value{
				Match: match, Text: text, Min: query.Bound{Set: i%2 == 0, N: math.MinInt64}, Max: query.Bound{Set: i%3 == 0, N: math.MaxInt64},
			}
			q := query.New(query.Not{X: query.And{query.Term{Field: f, Values: []query.Value{value}}}})
			page, err := d.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 500})
			if err != nil {
				t.Fatalf("%s %d %q: %v", f, match, text, err)
			}
			want := 0
			for i := range tasks {
				if q.Match(&tasks[i], time.Time{}) {
					want++
				}
			}
			if got := len(page.Tasks); got != want {
				t.Errorf("not %s %d %q: %d tasks, want %d", f, match, text, got, want)
			}
		}
	}
}

func TestHostileRequests(t *testing.T) {
	t.Parallel()
	d := openHistory(t, t.TempDir())
	historytest.Fill(t, d, 1, 50)
	extremes := []int64{math.MinInt64, -1, 0, math.MaxInt64}
	for _, field := range []query.Field{0, query.Any, query.Name, query.Args, query.Run, query.Clock, 200} {
		for _, n := range extremes {
			for _, newer := range []bool{false, true} {
				_, err := d.Tasks(t.Context(), history.TaskRequest{
					Sort: query.Sort{Field: field}, Limit: int(n), Newer: newer,
					From: &state.Position{Stamp: clock.Stamp{Clock: n, Micros: n, Origin: "\x00"}, Value: n, ID: "\xff"},
				})
				if err != nil {
					t.Errorf("page by %d from %d: %v", field, n, err)
				}
			}
		}
	}
	many := query.Or{}
	for i := range 100 {
		many = append(many, query.And{
			query.Equal(query.Name, fmt.Sprint(i)), query.Not{X: query.Equal(query.Args, fmt.Sprint("text ", i))}, query.Between(query.Run, int64(i), int64(i+1)),
		})
	}
	if _, err := d.Tasks(t.Context(), history.TaskRequest{Query: query.New(many), Limit: 10}); err != nil {
		t.Error(err)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	d := openHistory(t, t.TempDir())
	tasks := historytest.Fill(t, d, 1, 100)
	for _, c := range []struct {
		field query.Field
		value func(*state.Task) *string
	}{
		{query.Name, func(t *state.Task) *string { return t.Name }},
		{query.Worker, func(t *state.Task) *string { return t.Worker }},
		{query.Queue, func(t *state.Task) *string { return t.Queue }},
		{query.State, func(t *state.Task) *string { return new(string(t.State)) }},
	} {
		for _, part := range []string{"", "SHOP", "a", "nothing"} {
			want := []string{}
			for i := range tasks {
				if v := c.value(&tasks[i]); v != nil && strings.Contains(strings.ToLower(*v), strings.ToLower(part)) {
					want = append(want, *v)
				}
			}
			slices.Sort(want)
			want = slices.Compact(want)
			got, err := d.Values(t.Context(), c.field, part, 100)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("values of %s with %q (-want +got): %s %v", c.field, part, diff, err)
			}
			if got, err := d.Values(t.Context(), c.field, part, 1); err != nil || len(got) != min(1, len(want)) {
				t.Errorf("one value of %s with %q = %q, %v", c.field, part, got, err)
			}
		}
	}
	if got, err := d.Values(t.Context(), query.Run, "", 5); len(got) != 0 || err != nil {
		t.Errorf("values of run = %q, %v", got, err)
	}
}

// TestTextIsIndexedWhileTheStoreRuns finds texts before and after they are indexed, and after they have changed.
func TestTextIsIndexedWhileTheStoreRuns(t *testing.T) {
	t.Parallel()
	d := openHistory(t, t.TempDir())
	historytest.Fill(t, d, 1, 200)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx, func([]string) {}) }()
	finished := history.TaskRequest{Query: query.New(query.Equal(query.Is, query.IsFinished)), Limit: 500}
	page, err := d.Tasks(t.Context(), finished)
	if err != nil {
		t.Fatal(err)
	}
	timeout, tick := time.After(3*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for d.Indexed(t) < len(page.Tasks) {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%d texts indexed, want %d", d.Indexed(t), len(page.Tasks))
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestEverySearchUsesAnIndex explains a query for each field: it reads the index of the field or that of the clock, whether
// the plan finds few rows or many.
func TestEverySearchUsesAnIndex(t *testing.T) {
	t.Parallel()
	d := openHistory(t, t.TempDir())
	historytest.Fill(t, d, 1, 300)
	if err := d.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(query.Fields(), query.Any) {
		if f == query.Outbox || f == query.Cluster || f.Causal() {
			continue // resolved to ids before
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			want, term := explained(f)
			r := history.TaskRequest{Query: query.New(term), Limit: 10, Now: time.Unix(1_790_000_600, 0)}
			for _, walked := range []bool{false, true} {
				plans, err := d.Explain(t.Context(), r, walked)
				if err != nil {
					t.Fatal(err)
				}
				found := false
				for _, p := range plans {
					if strings.HasPrefix(p, "SCAN tasks") && !strings.Contains(p, " USING ") {
						t.Errorf("%s: %s", r.Query, p)
					}
					found = found || strings.Contains(p, want)
				}
				if !found && !walked {
					t.Errorf("%s is not searched by %s: %q", r.Query, want, plans)
				}
			}
		})
	}
}

// explained returns a term on a field, and what must be used to search by it.
func explained(f query.Field) (index string, term query.Term) {
	switch index = "tasks_by_" + f.String(); f { //nolint:exhaustive // others have an index
	case query.Client, query.Exchange, query.RoutingKey, query.ETA, query.Expires:
		index = "tasks_by_clock"
	}
	switch f.Type() {
	case query.Word, query.Set:
		text := "default"
		if f == query.Dup {
			text = query.DupOverlapping
		}
		switch f { //nolint:exhaustive // others have texts of their own
		case query.ID:
			index = "sqlite_autoindex_tasks_1"
		case query.State:
			text = string(state.Failure)
		case query.Is:
			index, text = "tasks_active", query.IsActive
		case query.Failure:
			text = fingerprint.ID(7).String()
		case query.Name, query.Worker, query.Client:
			return index, query.Term{Field: f, Values: []query.Value{{Match: query.Pattern, Text: "*e*"}}}
		}
		return index, query.Equal(f, text)
	case query.Text:
		return "text_pages USING INTEGER PRIMARY KEY", query.Equal(f, "order")
	default:
		return index, query.Between(f, 1, 5)
	}
}
