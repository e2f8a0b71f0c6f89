package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

const (
	maxResponse = 16 << 20 // bytes of a response of the API
	timeout     = 30 * time.Second
)

var errTooLarge = fmt.Errorf("the response is larger than %d MiB: ask for less with a smaller limit", maxResponse>>20)

// client asks the JSON API.
type client struct {
	base      string // URL of the API
	token     string // may be empty
	transport http.RoundTripper
}

// get returns what the API has at a path, without fields that are null. The error is a sentence for the assistant.
func (c *client) get(ctx context.Context, path string, params url.Values) (map[string]any, error) {
	text, err := c.fetch(ctx, path, params)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&body); err != nil {
		return nil, fmt.Errorf("the response of Umbel is not JSON: %w", err)
	}
	withoutNull(body)
	return body, nil
}

// fetch returns the JSON that the API has at a path. The error is a sentence for people.
func (c *client) fetch(ctx context.Context, path string, params url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if len(params) > 0 {
		path += "?" + params.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.transport.RoundTrip(r) // redirects would take the token elsewhere
	if err != nil {
		return nil, fmt.Errorf("no response from Umbel: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the response of Umbel: %w", err)
	case len(text) > maxResponse:
		return nil, errTooLarge
	case response.StatusCode != http.StatusOK:
		return nil, refusal(response.StatusCode, text)
	}
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errors.New("there is no JSON API of Umbel at this URL")
	}
	return text, nil
}

// refusal says what a response with another status than 200 means.
func refusal(status int, text []byte) error {
	var problem struct{ Detail, Nearest string }
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("Umbel responds with %d %s: check its URL", status, http.StatusText(status)) //nolint:staticcheck // a name
	}
	detail := problem.Detail
	if problem.Nearest != "" && !strings.Contains(detail, problem.Nearest) {
		detail += fmt.Sprintf(" The nearest is %q.", problem.Nearest)
	}
	return fmt.Errorf("%d %s: %s", status, cmp.Or(http.StatusText(status), "response"), detail)
}

// withoutNull removes the fields that are null.
func withoutNull(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
			}
			withoutNull(value)
		}
	case []any:
		for _, value := range v {
			withoutNull(value)
		}
	}
}

// handlerTransport asks a handler in the process.
type handlerTransport struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper. It fails if the handler panics or responds with too much: nobody else would
// recover here, outside the goroutine of net/http.
func (t handlerTransport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	w := &buffer{header: http.Header{}}
	defer func() {
		if cause := recover(); cause != nil {
			response, err = nil, cmp.Or(w.err, errors.New("the request failed"))
		}
	}()
	// The router in front has left its position in the context.
	ctx := context.WithValue(r.Context(), chi.RouteCtxKey, (*chi.Context)(nil))
	t.handler.ServeHTTP(w, r.WithContext(ctx))
	if w.err != nil {
		return nil, w.err
	}
	return &http.Response{StatusCode: cmp.Or(w.status, http.StatusOK), Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

// buffer is an http.ResponseWriter in memory.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
	err    error
}

// Header implements http.ResponseWriter.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffer) WriteHeader(status int) { b.status = cmp.Or(b.status, status) }

// Write implements http.ResponseWriter.
func (b *buffer) Write(p []byte) (int, error) {
	if b.body.Len()+len(p) > maxResponse {
		b.err = errTooLarge
		return 0, b.err
	}
	return b.body.Write(p)
}
