package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/mcp"
)

// How often another Umbel is asked, how long it may take to answer, and what is shown of a text of its.
const (
	remoteEvery   = 5 * time.Second
	remoteTimeout = 5 * time.Second
	maxRemoteText = 300
)

// Remote is a cluster that another Umbel watches. It is read by that one's API, and never written.
type Remote struct {
	Name      string
	URL       string            // of that Umbel, or of one of its clusters
	Token     string            // an API token of it; may be empty
	Transport http.RoundTripper // nil means http.DefaultTransport

	mu   sync.Mutex
	last templates.Cluster // as of its SeenAt
	err  error             // of the newest attempt

	searching atomic.Int32 // searches that wait for an answer
}

// CheckRemoteURL says in a sentence what is wrong with the URL of a Remote.
func CheckRemoteURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("the URL of another Umbel is like https://ops.example.com/umbel")
	}
	if u.User != nil {
		return errors.New("the URL of another Umbel has no user or password: use an API token")
	}
	return nil
}

// run asks the other Umbel until ctx ends.
func (r *Remote) run(ctx context.Context) {
	tick := time.NewTicker(remoteEvery)
	defer tick.Stop()
	for {
		c, err := r.read(ctx)
		if ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		if r.err = err; err == nil {
			r.last = c
		}
		r.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// read asks once.
func (r *Remote) read(ctx context.Context) (c templates.Cluster, err error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	from := mcp.Remote{URL: strings.TrimRight(r.URL, "/"), Token: r.Token, Transport: r.Transport}
	get := func(path string, v any) {
		var text []byte
		if err == nil {
			text, err = from.Get(ctx, path, nil)
		}
		if err == nil {
			if wrong := json.Unmarshal(text, v); wrong != nil {
				err = errors.New("its answers are not those of Umbel")
			}
		}
	}
	var status api.Status
	var overview struct {
		Counts struct{ Workers map[string]int }
		Rates  struct{ Succeeded, Failed float64 }
		Health struct {
			Ready  bool
			Broker *struct {
				URL       string
				Connected bool
			}
		}
	}
	get("/status", &status)
	get("/overview", &overview)
	if err == nil && (!slices.Contains([]flow.Level{flow.Flowing, flow.Degraded, flow.Stuck, flow.Unknown}, flow.Level(status.Level)) || overview.Health.Broker == nil) {
		err = errors.New("its answers are not those of Umbel")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it does not answer within %v", remoteTimeout)
	}
	if err != nil {
		return c, err
	}
	c.Ready, c.Connected, c.Broker = overview.Health.Ready, overview.Health.Broker.Connected, remoteText(overview.Health.Broker.URL)
	c.Rate, c.SeenAt = overview.Rates.Succeeded+overview.Rates.Failed, time.Now()
	for status, n := range overview.Counts.Workers {
		if status != "offline" {
			c.Online += n
		}
	}
	c.Flow.Level, c.Failed, c.Backlog = flow.Level(status.Level), status.FailedShare, status.Backlog
	if len(status.Reasons) > 0 {
		c.Flow.Reasons = []flow.Reason{{Level: flow.Level(status.Reasons[0].Level), Text: remoteText(status.Reasons[0].Text)}}
	}
	return c, nil
}

// remoteText bounds a text of another Umbel to a line.
func remoteText(text string) string {
	return truncate.Text(strings.Join(strings.Fields(text), " "), maxRemoteText)
}

// shown is what is known of the cluster.
func (r *Remote) shown() templates.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.last
	c.Name, c.Href, c.Remote = r.Name, strings.TrimRight(r.URL, "/")+"/", r.URL
	switch {
	case r.err != nil:
		c.Unavailable = "The Umbel that watches it cannot be read: " + strings.TrimRight(remoteText(r.err.Error()), ".") + "."
	case c.SeenAt.IsZero():
		c.Unavailable = "The Umbel that watches it has not answered yet."
	}
	return c
}
