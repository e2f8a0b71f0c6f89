package query_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/state/query"
)

func TestPinnedQueriesNameMoments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                                    "",
		"state:failure run:>2s":               "run:>2s state:failure",
		"finished:-1h..":                      "finished:2026-11-20T11:00:00Z..2026-11-20T12:00:00Z",
		"started:..-1h OR -received:-2h..-1h": "-received:2026-11-20T10:00:00Z..2026-11-20T11:00:00Z OR started:..2026-11-20T11:00:00Z",
		"eta:-1h..":                           "eta:2026-11-20T11:00:00Z..",
		"sent:>-1h":                           "sent:2026-11-20T11:00:00Z..2026-11-20T12:00:00Z",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		w, err := query.Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Pin(now); !got.Equal(w) || !got.Equal(got.Pin(now.Add(time.Hour))) {
			t.Errorf("%q pinned = %q, want %q", text, got, w)
		}
	}
}
