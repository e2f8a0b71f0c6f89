package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"

	"github.com/umbelhq/umbel/web/mcp"
)

// mcpCmd lets an assistant read a running Umbel.
type mcpCmd struct {
	URL   string `name:"url" env:"UMBEL_URL" default:"http://127.0.0.1:5555" help:"URL of the running Umbel, with its prefix."`
	Token string `env:"UMBEL_TOKEN" help:"API token, if Umbel asks who users are. Other users of this machine can read arguments: set the variable."`
}

// Run answers the assistant until standard input or ctx ends.
func (c *mcpCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usageError{errors.New("--url must be like http://127.0.0.1:5555 or https://ops.example.com/umbel")}
	}
	return mcp.Remote{URL: strings.TrimRight(c.URL, "/"), Token: c.Token}.Serve(ctx, s.in, s.out, versionString())
}
