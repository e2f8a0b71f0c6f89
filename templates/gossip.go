package templates

import (
	"slices"

	"github.com/umbelhq/umbel/state/gossip"
)

// maxDeaf bounds the workers that the panel names as deaf; the API has more.
const maxDeaf = 10

// deafTo is a worker with those that it does not seem to hear.
type deafTo struct {
	worker   string
	speakers []string
	since    int64 // the earliest, µs
	longer   bool
}

// deafOf groups what does not seem to be heard by who does not hear it.
func deafOf(r *gossip.Report) []deafTo {
	var list []deafTo
	for _, v := range r.Deaf {
		i := slices.IndexFunc(list, func(d deafTo) bool { return d.worker == v.Worker })
		if i < 0 {
			i, list = len(list), append(list, deafTo{worker: v.Worker, since: v.Since})
		}
		d := &list[i]
		d.speakers = append(d.speakers, v.Speaker)
		d.longer = d.longer || v.Longer
		d.since = min(d.since, v.Since)
	}
	return list
}
