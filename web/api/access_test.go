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

// asSaid lets those in whose header As names a role, without payloads, and all others do everything but nobody.
type asSaid struct{}

func (asSaid) Authenticate(r *http.Request) (auth.Grant, error) {
	switch role := auth.Role(r.Header.Get("As")); role {
	case "":
		return auth.Grant{User: "ada", Audience: auth.Everything}, nil
	case "nobody":
		return auth.Grant{}, nil
	default:
		return auth.Grant{User: "ada", Audience: auth.Audience{Role: role}}, nil
	}
}

// as returns h as somebody asks it.
func as(g auth.Grant, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), g)))
	})
}
