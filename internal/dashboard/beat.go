package dashboard

import (
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/beat/database"
)

// BeatTables returns the databases that o.BeatURLs name, after o.BeatSources. They connect nowhere yet.
func BeatTables(o Options) ([]beat.Source, error) {
	return openSources("schedules", o.BeatSources, o.BeatURLs, func(url string) (beat.Source, error) {
		return database.New(database.Options{URL: url})
	}, beat.Check)
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
