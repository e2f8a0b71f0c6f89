package api

import (
	"fmt"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// recovered answers 500 where a handler panics, and marks every answer as private.
func (a *api) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.recover(w, r)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// recover ends a panic. It must be deferred itself.
func (a *api) recover(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(v)
	}
	a.logger.ErrorContext(r.Context(), "api handler panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	problem(http.StatusInternalServerError, "Umbel could not answer; its log says why.").write(w)
}

// negotiated answers 406 to clients that do not take JSON, but for what has a format of its own.
func negotiated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		export := strings.HasSuffix(r.URL.Path, "/tasks/export")
		if accept := strings.Join(r.Header.Values("Accept"), ","); !export && accept != "" && !takesJSON(accept) {
			problem(http.StatusNotAcceptable, "The API speaks application/json only.").write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func takesJSON(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || !slices.Contains([]string{"application/json", problemType, "application/*", "*/*"}, kind) {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
			return true
		}
	}
	return false
}
