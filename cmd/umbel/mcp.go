package main

import (
	"context"
	"log/slog"
)

// mcpCmd lets an assistant read a running Umbel.
type mcpCmd struct{ remoteFlags }

// Run answers the assistant until standard input or ctx ends.
func (c *mcpCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	remote, err := c.remote()
	if err != nil {
		return err
	}
	return remote.Serve(ctx, s.in, s.out, versionString())
}
