package api_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// shopOutbox is an application's outbox with dead letters 1 and 2. Changing it changes nothing.
type shopOutbox struct{ outboxwatch.Source }

func (shopOutbox) Name() string   { return "shop" }
func (shopOutbox) String() string { return "sqlite:////shop.db" }
func (shopOutbox) Close() error   { return nil }

func (shopOutbox) DeadLetters(_ context.Context, r outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	for id := int64(2); id > 0; id-- {
		if r.IDs == nil || slices.Contains(r.IDs, id) {
			page.DeadLetters = append(page.DeadLetters, outboxwatch.DeadLetter{
				ID: id, TaskID: taskID, TaskName: "shop.pay", CreatedAt: time.UnixMicro(start), DeadAt: time.UnixMicro(start), SchemaVersion: 1,
			})
		}
	}
	return page, nil
}

// outboxes watches shopOutbox.
func outboxes(t *testing.T) *outboxwatch.Watcher {
	t.Helper()
	return watching(t, shopOutbox{})
}

func watching(t *testing.T, s outboxwatch.Source) *outboxwatch.Watcher {
	t.Helper()
	w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
