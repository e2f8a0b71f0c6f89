package main

import (
	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// outboxFlags say which outboxes of applications to watch.
type outboxFlags struct {
	OutboxURLs     []string `name:"outbox-url" env:"UMBEL_OUTBOX_URL" placeholder:"URL" help:"Database with an application's outbox (django-celery-outbox): postgres://user:password@host/name or sqlite:////path. Its query may set name, schema and stale_timeout. Repeatable."`
	OutboxURLFiles []string `name:"outbox-url-file" env:"UMBEL_OUTBOX_URL_FILE" placeholder:"FILE" help:"Read such URLs from a file, one in each line. Repeatable."`
}

// outboxes sets the outboxes in o. Its error names the flag that is wrong.
func (f *outboxFlags) outboxes(o *dashboard.Options) error {
	return readURLs("--outbox-url", f.OutboxURLs, f.OutboxURLFiles, &o.OutboxURLs, func() ([]outboxwatch.Source, error) { return dashboard.Outboxes(*o) })
}
