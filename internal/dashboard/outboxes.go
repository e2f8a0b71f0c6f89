package dashboard

import (
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// Outboxes returns the outboxes of applications that o.OutboxURLs name, after those of o.OutboxSources. They connect nowhere
// yet.
func Outboxes(o Options) ([]outboxwatch.Source, error) {
	return openSources("outbox", o.OutboxSources, o.OutboxURLs, func(url string) (outboxwatch.Source, error) {
		return database.New(database.Options{URL: url})
	}, outboxwatch.Check)
}
