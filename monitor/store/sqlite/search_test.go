package sqlite_test

import (
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/monitor/store/sqlite"
	"github.com/umbelhq/umbel/monitor/store/storetest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

func TestSearch(t *testing.T) {
	t.Parallel()
	settle := func(t *testing.T, s store.Store) {
		t.Helper()
		if err := s.(*sqlite.DB).Index(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		storetest.Search(t, storetest.Searching{
			Open: func(t *testing.T) store.Store { return history(t, t.TempDir()) }, Settle: settle,
		})
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		storetest.Search(t, storetest.Searching{
			Open: func(t *testing.T) store.Store { return history(t, sqlite.Memory) }, Settle: settle,
		})
	})
	t.Run("in parts", func(t *testing.T) {
		t.Parallel()
		storetest.Search(t, storetest.Searching{Open: func(t *testing.T) store.Store {
			d := history(t, t.TempDir())
			d.Hurry()
			return d
		}, Settle: settle, Bounded: true})
	})
}

func history(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestEveryFieldHasAnIndex explains a query for each field. None may look at all tasks, whether what it finds is
// gathered or walked.
func TestEveryFieldHasAnIndex(t *testing.T) {
	t.Parallel()
	d := history(t, t.TempDir())
	storetest.Fill(t, d, 1, 300)
	if err := d.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(query.Fields(), query.Any) {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			want, term := explained(f)
			r := store.Request{Query: query.New(term), Limit: 10, Now: time.Unix(1_790_000_600, 0)}
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
	index = "tasks_by_" + f.String()
	switch f.Type() {
	case query.Word, query.Set:
		text := "default"
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
		return "texts VIRTUAL TABLE INDEX", query.Equal(f, "order")
	default:
		return index, query.Between(f, 1, 5)
	}
}
