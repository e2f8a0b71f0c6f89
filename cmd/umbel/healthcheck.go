package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthcheckTimeout bounds the request of a health check.
const healthcheckTimeout = 5 * time.Second

// healthcheckCmd asks a running Umbel whether it responds. Its flags are those of serve that say where.
type healthcheckCmd struct {
	Listen    string `env:"UMBEL_LISTEN" default:"127.0.0.1:5555" help:"Address that Umbel listens on, or unix:/path."`
	HTTPSCert string `name:"https-cert" env:"UMBEL_HTTPS_CERT" placeholder:"FILE" help:"Set if Umbel serves HTTPS."`
}

// Run is nil if /healthz responds.
func (c *healthcheckCmd) Run(ctx context.Context, _ streams, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	network, address := "tcp", loopbackOf(c.Listen)
	if path, ok := strings.CutPrefix(c.Listen, "unix:"); ok {
		network, address = "unix", path
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is for another name than loopback, and nothing secret is sent
	}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if c.HTTPSCert != "" {
		scheme = "https"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://localhost/healthz", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no response from %s: %w", c.Listen, err)
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds with %s", c.Listen, response.Status)
	}
	return nil
}

// loopbackOf returns where a server that listens on an address is reached from its own host. It uses no name: an image
// from scratch can have none.
func loopbackOf(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return listen
	case host == "::":
		return net.JoinHostPort("::1", port)
	case host == "" || host == "0.0.0.0":
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}
