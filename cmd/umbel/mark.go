package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/web/api"
)

const (
	markTimeout  = 30 * time.Second
	markResponse = 1 << 20 // bytes
)

// markCmd marks a deploy.
type markCmd struct {
	remoteFlags

	At         string `placeholder:"TIME" help:"When: a time such as 2026-11-21T10:00:00Z, or the seconds since 1970 UTC. Now by default."`
	Link       string `placeholder:"URL" help:"URL that the mark leads to, such as that of the build."`
	Service    string `help:"What was deployed."`
	TagVersion string `name:"tag" placeholder:"VERSION" help:"Version of it."`
}

// Run sets the mark and prints its ID.
func (c *markCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	if len(s.args) == 0 {
		return usageError{errors.New("a mark needs a text: umbel mark v2.3.1")}
	}
	remote, err := c.remote()
	if err != nil {
		return err
	}
	body, err := json.Marshal(api.MarkBody{Text: s.args[0], At: c.At, Link: c.Link, Service: c.Service, Version: c.TagVersion})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, remote.URL+"/api/v1/marks", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if remote.Token != "" {
		r.Header.Set("Authorization", "Bearer "+remote.Token)
	}
	response, err := http.DefaultTransport.RoundTrip(r) // redirects would take the token elsewhere
	if err != nil {
		return fmt.Errorf("no response from Umbel: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, markResponse))
	if err != nil {
		return fmt.Errorf("read the response of Umbel: %w", err)
	}
	return printMark(s.out, response.StatusCode, text)
}

// printMark prints the ID of a mark that was set. The error says why it was not.
func printMark(out io.Writer, status int, text []byte) error {
	var v struct{ ID, Detail string }
	err := json.Unmarshal(text, &v)
	if status != http.StatusCreated || err != nil || v.ID == "" {
		return fmt.Errorf("not marked: %d %s", status, printable(cmp.Or(v.Detail, http.StatusText(status))))
	}
	_, err = fmt.Fprintln(out, printable(v.ID))
	return err
}
