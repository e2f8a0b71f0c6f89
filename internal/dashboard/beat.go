package dashboard

import (
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/beat/database"
)

// BeatTables returns the databases that o.BeatURLs name, after o.BeatSources. They connect nowhere yet.
func BeatTables(o Options) ([]beat.Source, error) {
	list := slices.Clone(o.BeatSources)
	for _, url := range o.BeatURLs {
		b, err := database.New(database.Options{URL: url})
		if err == nil {
			list = append(list, b)
			err = beat.Check(list)
		}
		if err != nil {
			for _, s := range list {
				_ = s.Close()
			}
			return nil, fmt.Errorf("schedules: %w", err)
		}
	}
	return list, nil
}

// readBeatTables prepares to read the tables of django-celery-beat, if any are named.
func (d *Dashboard) readBeatTables(o Options) error {
	sources, err := BeatTables(o)
	if err != nil || len(sources) == 0 {
		return err
	}
	d.beatTables, err = beat.New(beat.Options{Sources: sources, Logger: o.Logger})
	return err
}
