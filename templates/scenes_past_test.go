package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/templates"
)

// past is a page as of an instant that is not wholly known.
func past(l templates.Layout) templates.Layout {
	at := time.Date(2026, 9, 21, 14, 3, 22, 120_000_000, time.UTC)
	l.Topic, l.Page = "", ""
	l.Past = &templates.Past{
		At: at, WorkersAt: at.Add(-22 * time.Second), Doubts: []string{"tasks that ended by then may have been removed"},
		Now: "/ops/", Before: "/ops/?at=2026-09-21T14%3A03%3A22.110000Z", After: "/ops/?at=2026-09-21T14%3A03%3A22.130000Z", Path: "/ops/",
		Jumps:  []templates.Link{{Text: "−1 min", Href: "/ops/?at=2026-09-21T14%3A02%3A22.120000Z"}},
		Params: []templates.Param{{Name: "chart", Value: "6h"}}, From: at.Add(-time.Hour), To: at,
	}
	return l
}
