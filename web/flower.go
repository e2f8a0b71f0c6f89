package web

import (
	"net/http"

	"github.com/umbelhq/umbel/web/flower"
)

// orJSON serves the JSON that Flower has at the addresses of workers, if the request asks for it, else a page.
func orJSON(compatible *flower.API, pattern string, page http.HandlerFunc) http.HandlerFunc {
	if pattern != "/" && pattern != "/workers" {
		return page
	}
	workers := compatible.Workers()
	return func(w http.ResponseWriter, r *http.Request) {
		if flower.WantsJSON(r) {
			workers.ServeHTTP(w, r)
			return
		}
		page(w, r)
	}
}
