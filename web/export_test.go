package web

import (
	"time"

	"github.com/go-chi/chi/v5"
)

// Routed returns all routes below the prefix.
func (h *Handler) Routed() chi.Routes { return h.routed }

// WaitForBodies sets how long a body may take.
func (h *Handler) WaitForBodies(d time.Duration) { h.bodies.timeout = d }
