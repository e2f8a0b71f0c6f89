package query

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/workers"
)

// Workers selects and orders the list of workers. The zero value selects all, by host.
type Workers struct {
	Find string // words that rows show
	Sort string // one of workers.SortKeys, with - before it for the greatest first; empty means by host
}

// ParseWorkers reads a query from URL parameters as Parse does.
func ParseWorkers(v url.Values) (Workers, error) {
	p := parser{values: v}
	w := Workers{Find: strings.TrimSpace(p.one(paramFind)), Sort: p.one(paramSort)}
	if len(w.Find) > maxValue {
		p.fail(paramFind, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
	}
	if w.Sort != "" && !slices.Contains(workers.SortKeys(), strings.TrimPrefix(w.Sort, "-")) {
		p.fail(paramSort, "must be one of "+strings.Join(workers.SortKeys(), ", ")+", with a leading - for descending order")
	}
	return w, p.failed()
}

// URL returns path with the parameters that select the same list, in one spelling.
func (w Workers) URL(path string) string {
	return address(path, map[string]string{paramFind: w.Find, paramSort: w.Sort})
}
