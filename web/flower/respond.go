package flower

import (
	"context"
	"crypto/sha1" //nolint:gosec // as Flower's ETags
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/web/fair"
)

// failure is an error with the status and text that Flower would respond with. An empty text is an empty body.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return strconv.Itoa(f.status) + " " + f.text }

// refusal is a failure that Flower writes as text/html, as it does when a worker refuses a command.
type refusal struct{ failure }

// invalid is a failure in JSON.
type invalid struct{ text string }

func (e *invalid) Error() string { return e.text }

// text is a body of text/html.
type text string

// nothing is 204.
type nothing struct{}

// redirect leads to another address, relative to the path of the request.
type redirect string

// fail writes an error as Flower does.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	var refused *refusal
	var wrong *invalid
	plain := "text/plain"
	if strings.HasPrefix(r.URL.Path, "/api/") {
		plain = "text/plain; charset=UTF-8"
	}
	switch {
	case errors.As(err, &f):
		body(w, f.status, plain, f.text)
	case errors.As(err, &refused):
		body(w, refused.status, "text/html; charset=UTF-8", refused.text)
	case errors.As(err, &wrong):
		body(w, http.StatusBadRequest, jsonType, string(encode(object{{"error", wrong.text}})))
	case r.Context().Err() != nil: // nobody reads it
		w.WriteHeader(http.StatusServiceUnavailable)
	case errors.Is(err, fair.ErrBusy):
		body(w, http.StatusServiceUnavailable, plain, "Other requests of this client take all the time there is. Try again.")
	case errors.Is(err, context.DeadlineExceeded):
		body(w, http.StatusServiceUnavailable, plain, "This took too long. Ask for less, or try again.")
	default:
		a.Logger.ErrorContext(r.Context(), "request of Flower's API failed", "path", r.URL.Path, "error", err)
		body(w, http.StatusInternalServerError, "text/html; charset=UTF-8", "")
	}
}

// body writes a whole body. One without text has Flower's default type.
func body(w http.ResponseWriter, status int, kind, text string) {
	if text == "" {
		kind = "text/html; charset=UTF-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

const jsonType = "application/json; charset=UTF-8"

// write writes a value with its ETag, or 304 if the client has it.
func (a *API) write(w http.ResponseWriter, r *http.Request, value any) {
	switch v := value.(type) {
	case stream:
		a.writeStream(w, r, v)
	case nothing:
		w.WriteHeader(http.StatusNoContent)
	case redirect:
		w.Header().Set("Location", string(v))
		w.WriteHeader(http.StatusFound)
	case text:
		a.send(w, r, "text/html; charset=UTF-8", []byte(v))
	default:
		a.send(w, r, jsonType, encode(value))
	}
}

// send writes a whole body with its ETag, or 304 if the client has it.
func (a *API) send(w http.ResponseWriter, r *http.Request, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	if tagged(w, r, content) {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(content)
}

// tagged sets the ETag of the content, if it answers a question, and reports whether the client has it.
func tagged(w http.ResponseWriter, r *http.Request, content []byte) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	sum := sha1.Sum(content) //nolint:gosec // names the content
	tag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", tag)
	for part := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == "*" || part == tag {
			return true
		}
	}
	return false
}

// readBody reads the body of a request, which the server has bounded.
func readBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &failure{http.StatusBadRequest, "The body could not be read."}
	}
	return b, nil
}
