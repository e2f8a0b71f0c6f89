package postgres

import (
	"slices"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// findFailures sets the failure groups of failed tasks, which it adds if needed.
func (t *tx) findFailures(records []record) error {
	type group struct {
		name string
		fingerprint.Fingerprint
	}
	groups, ids := make(map[int64]group), []int64(nil)
	for i := range records {
		v := &records[i].View
		if v.State != state.Failure {
			continue
		}
		f, id := fingerprint.OfTask(v)
		records[i].failure = new(int64(id))
		if _, ok := groups[int64(id)]; !ok {
			ids = append(ids, int64(id))
			groups[int64(id)] = group{nameOf(v), f}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	known, err := tables.List[int64](t.ctx, t.Tx, `SELECT failure FROM failures WHERE failure = ANY($1)`, ids)
	if err != nil || len(known) == len(ids) {
		return err
	}
	n, err := tables.Number[int](t.ctx, t.Tx, `SELECT count(*) FROM failures`)
	if err != nil {
		return err
	}
	instead := make(map[int64]int64)
	for _, id := range ids {
		if slices.Contains(known, id) {
			continue
		}
		g, key := groups[id], id
		if n >= t.db.limits.groups {
			g.Fingerprint = fingerprint.Other()
			key = int64(g.ID(g.name))
			instead[id] = key
		} else {
			n++
		}
		err := t.Exec(`INSERT INTO failures (failure, name, type, message, place) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
			key, g.name, g.Type, g.Message, g.Place)
		if err != nil {
			return err
		}
	}
	for i := range records {
		if f := records[i].failure; f != nil {
			if key, ok := instead[*f]; ok {
				records[i].failure = &key
			}
		}
	}
	return nil
}

func nameOf(v *state.Task) string {
	if v.Name == nil {
		return ""
	}
	return *v.Name
}
