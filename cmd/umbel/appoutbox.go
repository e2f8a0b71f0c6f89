package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// outboxFlags say which outboxes of applications to watch.
type outboxFlags struct {
	OutboxURLs     []string `name:"outbox-url" env:"UMBEL_OUTBOX_URL" placeholder:"URL" help:"Database with an application's outbox (django-celery-outbox): postgres://user:password@host/name or sqlite:////path. Its query may set name, schema and stale_timeout. Repeatable."`
	OutboxURLFiles []string `name:"outbox-url-file" env:"UMBEL_OUTBOX_URL_FILE" placeholder:"FILE" help:"Read such URLs from a file, one in each line. Repeatable."`
}

// outboxes sets the outboxes in o. Its error names the flag that is wrong.
func (f *outboxFlags) outboxes(o *dashboard.Options) error {
	check := func(source string) error {
		list, err := dashboard.Outboxes(*o)
		for _, s := range list {
			_ = s.Close() // it has connected nowhere
		}
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", source, err)}
		}
		return nil
	}
	o.OutboxURLs = f.OutboxURLs
	if err := check("--outbox-url"); err != nil {
		return err
	}
	for _, name := range f.OutboxURLFiles {
		b, err := os.ReadFile(name) //nolint:gosec // the operator names it
		if err != nil {
			return usageError{fmt.Errorf("--outbox-url-file: %w", err)}
		}
		o.OutboxURLs = append(o.OutboxURLs, strings.Fields(string(b))...)
		if err := check("--outbox-url-file"); err != nil {
			return err
		}
	}
	return nil
}
