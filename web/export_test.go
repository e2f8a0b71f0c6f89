package web

import "github.com/go-chi/chi/v5"

// Routed returns all routes below the prefix.
func (h *Handler) Routed() chi.Routes { return h.routed }
