package history

import "context"

// Notifier is a Store that several processes share.
type Notifier interface {
	// Listen calls f when any process has changed what pages show of commands, views, marks or notes of failures, and whenever that may
	// have gone unheard, until ctx ends. It returns nil.
	Listen(ctx context.Context, f func()) error
}
