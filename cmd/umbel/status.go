package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/web/api"
)

// Exit statuses of umbel status.
const (
	errNotFlowing exitError = 1
	errNotKnown   exitError = 2
)

// statusCmd says whether work flows.
type statusCmd struct {
	remoteFlags

	JSON bool `name:"json" help:"Print the response of /api/v1/status."`
}

// Run prints the verdict. Its error is an exit status.
func (c *statusCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	remote, err := c.remote()
	if err != nil {
		return err
	}
	text, err := remote.Get(ctx, "/status", nil)
	var v api.Status
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		complain(s.err, err)
		return errNotKnown
	}
	if c.JSON {
		_, err = s.out.Write(text)
	} else {
		_, err = fmt.Fprintln(s.out, printable(v.Sentence))
		for _, r := range v.Reasons {
			_, err = fmt.Fprintf(s.out, "  %-8s  %s\n", printable(r.Level), printable(r.Text))
		}
	}
	switch {
	case err != nil:
		return err
	case v.Level == string(flow.Flowing):
		return nil
	case v.Level == string(flow.Unknown):
		return errNotKnown
	}
	return errNotFlowing
}
