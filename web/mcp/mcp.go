// Package mcp lets assistants read a cluster by the Model Context Protocol: tools that ask the JSON API with the rights of
// the caller, over standard input and output or by HTTP. No tool changes anything.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// versions are those of the protocol that are spoken, newest first. Later ones let a client hold a request open.
func versions() []string { return []string{"2025-11-25", "2025-06-18", "2025-03-26"} }

const instructions = "Umbel watches a Celery cluster: its tasks, workers and queues. These tools only read. Begin with status. " +
	"Times are RFC 3339 in UTC, durations are in seconds. A field that is missing is unknown, not zero."

// NewHandler returns a handler of POST requests, which are independent of each other. Its tools ask api, a handler of the
// JSON API by paths such as /tasks, with the context of the request and so with its auth.Grant.
func NewHandler(api http.Handler, version string) http.Handler {
	s := newServer(&client{base: "http://umbel", transport: handlerTransport{api}}, version)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // web checks hosts, and knows those of proxies
	})
}

// Remote is an Umbel that is asked over the network.
type Remote struct {
	URL       string            // with its prefix, without /api/v1
	Token     string            // an API token; may be empty
	Transport http.RoundTripper // nil means http.DefaultTransport
}

// Serve answers the messages of in, one on each line, on out until in or ctx ends.
func (r Remote) Serve(ctx context.Context, in io.Reader, out io.Writer, version string) error {
	t := &sdk.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}}
	if err := newServer(r.client(), version).Run(ctx, t); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve the Model Context Protocol: %w", err)
	}
	return nil
}

// Get returns the JSON that the API has at a path such as /status. The error is a sentence.
func (r Remote) Get(ctx context.Context, path string, params url.Values) ([]byte, error) {
	return r.client().fetch(ctx, path, params)
}

func (r Remote) client() *client {
	c := &client{base: r.URL + "/api/v1", token: r.Token, transport: r.Transport}
	if c.transport == nil {
		c.transport = http.DefaultTransport
	}
	return c
}

// unclosed is a writer that others close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func newServer(c *client, version string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "umbel", Title: "Umbel", Version: version}, &sdk.ServerOptions{
		Instructions: instructions, SupportedProtocolVersions: versions(),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
	})
	addTools(s, c)
	return s
}
