package main

import (
	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/beat"
)

// beatFlags say which tables of django-celery-beat to read.
type beatFlags struct {
	BeatURLs     []string `name:"beat-url" env:"UMBEL_BEAT_URL" placeholder:"URL" help:"Database with schedules of django-celery-beat: postgres://user:password@host/name or sqlite:////path. Its query may set name and schema. Repeatable."`
	BeatURLFiles []string `name:"beat-url-file" env:"UMBEL_BEAT_URL_FILE" placeholder:"FILE" help:"Read such URLs from a file, one in each line. Repeatable."`
}

// beatTables sets the databases in o. Its error names the flag that is wrong.
func (f *beatFlags) beatTables(o *dashboard.Options) error {
	return readURLs("--beat-url", f.BeatURLs, f.BeatURLFiles, &o.BeatURLs, func() ([]beat.Source, error) { return dashboard.BeatTables(*o) })
}
