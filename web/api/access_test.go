package api_test

import (
	"net/http"

	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
)

// newAPI returns an API of which Ada asks, who may do everything.
func newAPI(o api.Options) http.Handler {
	return as(auth.Grant{User: "ada", Audience: auth.Everything}, api.New(o))
}

// as returns h as somebody asks it.
func as(g auth.Grant, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), g)))
	})
}
