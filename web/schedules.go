package web

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/templates"
)

// schedulesAge is how long what was learnt is shown: schedules change slowly, and are read from many tasks.
const schedulesAge = 5 * time.Second

// schedulesPage shows which tasks are sent at regular intervals, beside what is configured in databases.
type schedulesPage struct {
	*common

	cache *cache[schedules.Result]
	beats *beats // nil if nothing is asked
}

func (p *schedulesPage) load(ctx context.Context, _ address) (page, error) {
	now, key := p.now(), ""
	if p.instant != nil {
		now, key = p.instant.At, p.instant.At.String()
	}
	found, err := p.cache.get(key, func() (schedules.Result, error) {
		return schedules.Read(ctx, p.backend, p.backend.History(), now)
	})
	if err != nil {
		return page{}, err
	}
	v := templates.Schedules{Result: found, Now: now, Senders: p.senders(ctx, found.Schedules, now.UnixMicro())}
	if p.beatTables != nil {
		for _, r := range p.beatTables.Snapshot() {
			v.Databases = append(v.Databases, templates.BeatDatabase{Reading: r, Entries: beat.Judge(r.Table, found, now)})
		}
	}
	return page{
		url: templates.SchedulesPath, title: "Schedules", section: templates.SectionSchedules,
		view: v,
	}, nil
}
