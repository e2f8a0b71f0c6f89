package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// beatFlags say which tables of django-celery-beat to read.
type beatFlags struct {
	BeatURLs     []string `name:"beat-url" env:"UMBEL_BEAT_URL" placeholder:"URL" help:"Database with schedules of django-celery-beat: postgres://user:password@host/name or sqlite:////path. Its query may set name and schema. Repeatable."`
	BeatURLFiles []string `name:"beat-url-file" env:"UMBEL_BEAT_URL_FILE" placeholder:"FILE" help:"Read such URLs from a file, one in each line. Repeatable."`
}

// beatTables sets the databases in o. Its error names the flag that is wrong.
func (f *beatFlags) beatTables(o *dashboard.Options) error {
	check := func(source string) error {
		list, err := dashboard.BeatTables(*o)
		for _, s := range list {
			_ = s.Close() // it has connected nowhere
		}
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", source, err)}
		}
		return nil
	}
	o.BeatURLs = f.BeatURLs
	if err := check("--beat-url"); err != nil {
		return err
	}
	for _, name := range f.BeatURLFiles {
		b, err := os.ReadFile(name) //nolint:gosec // the operator names it
		if err != nil {
			return usageError{fmt.Errorf("--beat-url-file: %w", err)}
		}
		o.BeatURLs = append(o.BeatURLs, strings.Fields(string(b))...)
		if err := check("--beat-url-file"); err != nil {
			return err
		}
	}
	return nil
}
