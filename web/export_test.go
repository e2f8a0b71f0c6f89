package web

import (
	"context"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

// Routed returns all routes below the prefix.
func (h *Handler) Routed() chi.Routes { return h.routed }

// Registered returns all routes but those of the API, as they were registered.
func (h *Handler) Registered() []auth.Route { return h.table }

// Topics returns the patterns of topics, with the action of each.
func (h *Handler) Topics() map[string]auth.Action {
	topics := make(map[string]auth.Action)
	for _, rt := range h.pages.any().routes {
		topics[rt.pattern] = rt.action
	}
	return topics
}

// Snapshot renders a topic for an audience.
func (h *Handler) Snapshot(ctx context.Context, a auth.Audience, topic string) (live.Snapshot, error) {
	return h.pages.Snapshot(ctx, a, topic)
}

// WaitForBodies sets how long a body may take.
func (h *Handler) WaitForBodies(d time.Duration) { h.bodies.timeout = d }
