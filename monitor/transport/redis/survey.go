package redis

import (
	"context"

	"github.com/umbelhq/umbel/monitor/transport"
)

type discovery struct{ exchanges map[string]bool }

// Survey implements transport.Line.
func (c *line) Survey(context.Context, []string) (transport.Survey, error) {
	return transport.Survey{}, transport.ErrUnsupported
}

// Purge implements transport.Line.
func (c *line) Purge(context.Context, string) (int64, error) { return 0, transport.ErrUnsupported }

// Peek implements transport.Line.
func (c *line) Peek(context.Context, string, int) ([]transport.Publishing, error) {
	return nil, transport.ErrUnsupported
}

// Find implements transport.Line.
func (c *line) Find(context.Context, []string, string) (*transport.Publishing, error) {
	return nil, transport.ErrUnsupported
}
