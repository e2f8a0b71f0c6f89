package web

import (
	"slices"
	"strings"

	"github.com/umbelhq/umbel/templates"
)

// sorts are the orders that the heads of columns lead to, by key: at first the greatest first, but for those named here, and
// then the other way round. href makes the address of an order.
func sorts(keys []string, current string, href func(order string) string, ascending ...string) map[string]templates.Sort {
	list := make(map[string]templates.Sort, len(keys))
	sorted, descending := strings.CutPrefix(current, "-")
	for _, key := range keys {
		s, order := templates.Sort{}, "-"+key
		if slices.Contains(ascending, key) {
			order = key
		}
		if key == sorted {
			s.Order, order = "ascending", "-"+key
			if descending {
				s.Order, order = "descending", key
			}
		}
		s.Href = href(order)
		list[key] = s
	}
	return list
}
