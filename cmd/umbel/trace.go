package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// serveTrace shows a trace until ctx ends.
func (c *serveCmd) serveTrace(ctx context.Context, log *slog.Logger) error {
	o := dashboard.Options{Version: versionString()}
	if err := c.complete(&o, log); err != nil {
		return err
	}
	file, err := os.Open(c.Trace)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	u, err := dashboard.NewTrace(ctx, o, file)
	_ = file.Close()
	if wrong, ok := errors.AsType[*dashboard.TraceError](err); ok {
		return fmt.Errorf("%s %w", c.Trace, wrong)
	}
	if err != nil {
		return opened(err)
	}
	return c.show(ctx, u, log, nil)
}
