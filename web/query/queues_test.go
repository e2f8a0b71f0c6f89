package query_test

import (
	"net/url"
	"testing"

	"github.com/umbelhq/umbel/web/query"
)

func TestQueues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "/queues",
		"sort=name&hidden=no":    "/queues",
		"sort=-name&hidden=true": "/queues?hidden=true&sort=-name",
		"sort=-failed":           "/queues?sort=-failed",
		"sort=size&since=now":    "/queues",
		"until=2026-11-21T11:00:00Z&since=2026-11-21T10:00:00Z": "/queues?since=2026-11-21T10%3A00%3A00Z&until=2026-11-21T11%3A00%3A00Z",
	} {
		v, err := url.ParseQuery(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := query.ParseQueues(v).URL("/queues"); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}
