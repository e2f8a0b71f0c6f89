package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/umbelhq/umbel/web/mcp"
)

// remoteFlags say which running Umbel a command asks.
type remoteFlags struct {
	URL   string `name:"url" env:"UMBEL_URL" default:"http://127.0.0.1:5555" help:"URL of the running Umbel, with its prefix."`
	Token string `env:"UMBEL_TOKEN" help:"API token, if Umbel asks who users are. Other users of this machine can read arguments: set the variable."`
}

// remote checks the flags.
func (f *remoteFlags) remote() (mcp.Remote, error) {
	u, err := url.Parse(f.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return mcp.Remote{}, usageError{errors.New("--url must be like http://127.0.0.1:5555 or https://ops.example.com/umbel")}
	}
	return mcp.Remote{URL: strings.TrimRight(f.URL, "/"), Token: f.Token}, nil
}

// fetch reads what the API has at a path into v.
func fetch(ctx context.Context, r mcp.Remote, path string, params url.Values, v any) error {
	text, err := r.Get(ctx, path, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the response of Umbel is not as expected: %w", err)
	}
	return nil
}
