package dashboard

import (
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/outboxwatch/database"
)

// Outboxes returns the outboxes of applications that o.OutboxURLs name, after those of o.OutboxSources. They connect nowhere
// yet.
func Outboxes(o Options) ([]outboxwatch.Source, error) {
	list := slices.Clone(o.OutboxSources)
	for _, url := range o.OutboxURLs {
		b, err := database.New(database.Options{URL: url})
		if err == nil {
			list = append(list, b)
			err = outboxwatch.Check(list)
		}
		if err != nil {
			for _, s := range list {
				_ = s.Close()
			}
			return nil, fmt.Errorf("outbox: %w", err)
		}
	}
	return list, nil
}
