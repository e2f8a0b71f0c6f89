package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/auditlog"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// Cluster is one of several.
type Cluster struct {
	Name    string
	Options Options // without what counts for all, Auth and Member
}

// ClustersDir is where the histories of several clusters are, below the data directory, each in a directory of its name.
const ClustersDir = "clusters"

// ClusterSchema returns the schema of PostgreSQL that the history of one of several clusters is in. No two names of clusters differ in
// upper and lower case alone.
func ClusterSchema(name string) string { return "umbel_" + strings.ToLower(name) }

// Clusters watches several Celery clusters and shows them. Each has a broker and a history of its own, and what happens to one
// touches no other. It is safe for concurrent use.
type Clusters struct {
	members []*member
	log     *slog.Logger
	web     *web.Clusters

	// Of signing in, nil if nobody does.
	store    history.Store
	auditLog *auditlog.Log
	signIn   *auth.Service
}

// NewClusters validates o and the clusters, and opens their histories. Of o, Prefix, DataDir, History, Node, SignIn, Hosts, Origins, OpenMetrics, Remotes,
// Title, Color, Version, Redact and Logger count. It starts nothing. Close must follow. A history that cannot be opened is tried
// again by Run.
func NewClusters(o Options, clusters []Cluster) (*Clusters, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	c := &Clusters{log: o.Logger}
	if err := c.assemble(o, clusters); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Clusters) assemble(o Options, clusters []Cluster) error {
	names := make([]string, 0, len(clusters))
	for _, one := range clusters {
		names = append(names, one.Name)
	}
	for _, r := range o.Remotes {
		names = append(names, r.Name)
	}
	if err := validSignIn(o, names); err != nil {
		return err
	}
	if o.SignIn != nil {
		if err := c.openSignIn(o, names); err != nil {
			return err
		}
	}
	shown := make([]web.Cluster, 0, len(clusters))
	var opening errgroup.Group // of those that wait for a database, none waits for another
	for _, one := range clusters {
		m, err := c.newMember(o, one, names)
		if err != nil {
			return errors.Join(err, opening.Wait())
		}
		opening.Go(m.open)
		shown = append(shown, web.Cluster{Name: one.Name, Handler: m.handler})
	}
	for _, r := range o.Remotes {
		shown = append(shown, web.Cluster{Name: r.Name, Remote: r})
	}
	err := opening.Wait()
	if err != nil {
		return err
	}
	c.web, err = web.NewClusters(web.ClustersOptions{
		Clusters: shown, Auth: c.signIn, Prefix: o.Prefix, Title: o.Title, Color: o.Color, Version: o.Version,
		OpenMetrics: o.OpenMetrics, Hosts: o.Hosts, Origins: o.Origins, Logger: o.Logger,
	})
	return err
}

// openSignIn opens the store of sessions, tokens and the audit log of signing in, in the data directory itself.
func (c *Clusters) openSignIn(o Options, names []string) (err error) {
	if c.store, err = openHistory(o); err != nil {
		c.store = nil
		return &HistoryError{err}
	}
	redactor, err := redact.New(o.Redact)
	if err != nil {
		return err
	}
	if c.auditLog, err = auditlog.New(auditlog.Options{Store: c.store, Redact: redactor.Text, Logger: o.Logger}); err != nil {
		return err
	}
	signIn := *o.SignIn
	signIn.Store, signIn.Audit, signIn.Prefix, signIn.Logger, signIn.Clusters = c.store, c.auditLog, o.Prefix, o.Logger, names
	signIn.Shared = o.Node != ""
	if c.signIn, err = auth.New(context.Background(), signIn); err != nil {
		return &SignInError{err}
	}
	return nil
}

func (c *Clusters) newMember(o Options, one Cluster, names []string) (*member, error) {
	m := &member{name: one.Name, o: one.Options, log: o.Logger.With("cluster", one.Name)}
	var err error
	if m.o.Member, m.o.Prefix, err = web.NewMember(one.Name, names, o.Prefix); err != nil {
		return nil, err
	}
	if m.o.DataDir = o.DataDir; o.DataDir != "" && o.DataDir != sqlite.Memory {
		m.o.DataDir = filepath.Join(o.DataDir, ClustersDir, one.Name)
	}
	if m.o.History = o.History; o.History != "" {
		m.o.Schema, m.o.Node = ClusterSchema(one.Name), o.Node
	}
	if m.o.Node != "" && m.o.Queue == "" { // two clusters may have one broker
		m.o.Queue = "umbel." + strings.ToLower(one.Name)
	}
	m.o.Auth, m.o.SignIn, m.o.Logger = nil, nil, m.log
	m.o.Hosts, m.o.Origins, m.o.OpenMetrics = o.Hosts, o.Origins, o.OpenMetrics
	if c.signIn != nil {
		m.o.Auth = c.signIn.In(one.Name)
	}
	if m.o.Alerts.URL != "" { // links lead to the pages of the cluster
		m.o.Alerts.URL += web.ClustersPath + one.Name
	}
	c.members = append(c.members, m)
	return m, nil
}

// Run watches the clusters until ctx ends. It returns nil after an orderly stop.
func (c *Clusters) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range c.members {
		g.Go(func() error { return m.run(ctx) })
	}
	if c.signIn != nil {
		g.Go(func() error { return c.auditLog.Run(ctx) })
		g.Go(func() error { return c.signIn.Run(ctx) })
	}
	g.Go(func() error { return c.web.Run(ctx) })
	return g.Wait()
}

// Close closes the histories, after Run has returned and the last request was answered.
func (c *Clusters) Close() error {
	var err error
	for _, m := range c.members {
		if e := m.close(); e != nil {
			err = errors.Join(err, fmt.Errorf("cluster %s: %w", m.name, e))
		}
	}
	if c.store != nil {
		err = errors.Join(err, c.store.Close())
	}
	return err
}

// ServeHTTP shows the overview below the prefix, and the pages, sockets and API of each cluster below its name.
func (c *Clusters) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.web.ServeHTTP(w, r) }

// member is a cluster, and its dashboard while there is one.
type member struct {
	name string
	o    Options
	log  *slog.Logger

	mu  sync.Mutex
	d   *Dashboard // nil while there is none
	why error      // then
}

func (m *member) handler() (*web.Handler, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.d == nil {
		return nil, fmt.Sprintf("Its history cannot be used: %v.", m.why)
	}
	return m.d.web, ""
}

// open makes the dashboard. A history that cannot be opened is kept as the reason why there is none; all else is an error.
func (m *member) open() error {
	d, err := New(m.o)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.d, m.why = d, err
	if _, ok := errors.AsType[*HistoryError](err); ok {
		m.log.Error("cluster is unavailable", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", m.name, err)
	}
	return nil
}

// take returns the dashboard and forgets it, for why.
func (m *member) take(why error) *Dashboard {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.d
	m.d, m.why = nil, why
	return d
}

func (m *member) close() error {
	if d := m.take(errors.New("stopped")); d != nil {
		return d.Close()
	}
	return nil
}

// run watches the cluster until ctx ends. What fails is closed and opened again after a while: the other clusters go on.
func (m *member) run(ctx context.Context) error {
	const first, most = time.Second, time.Minute
	for failures := 1; ; failures++ {
		m.mu.Lock()
		d := m.d
		m.mu.Unlock()
		if d != nil {
			begun := time.Now()
			err := d.Run(ctx)
			if ctx.Err() != nil {
				return err
			}
			m.log.Error("cluster has failed", "error", err)
			if err := m.take(err).Close(); err != nil {
				m.log.Error("history cannot be closed", "error", err)
			}
			if time.Since(begun) > most {
				failures = 1
			}
		}
		select {
		case <-time.After(retry.After(failures, first, most)):
		case <-ctx.Done():
			return nil
		}
		if err := m.open(); err != nil { //nolint:contextcheck // a history that is being opened is opened to the end
			m.log.Error("cluster is unavailable", "error", err)
		}
	}
}
