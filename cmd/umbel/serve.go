package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/floweroptions"
	"github.com/umbelhq/umbel/internal/listener"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/issue"
)

// drain bounds the wait for requests in progress when the program stops.
const drain = 10 * time.Second

// webFlags say where the dashboard is served.
type webFlags struct {
	redactFlags
	Listen          string   `env:"UMBEL_LISTEN" default:"127.0.0.1:5555" help:"Address to listen on, or unix:/path of a socket that only its owner can open. Others than loopback and sockets require that users sign in, or --unauthenticated."`
	HTTPSCert       string   `name:"https-cert" env:"UMBEL_HTTPS_CERT" placeholder:"FILE" help:"Serve HTTPS with this certificate and its chain (PEM). Read again when it changes."`
	HTTPSKey        string   `name:"https-key" env:"UMBEL_HTTPS_KEY" placeholder:"FILE" help:"Key (PEM) of the certificate."`
	HTTPSClientCA   string   `name:"https-client-ca" env:"UMBEL_HTTPS_CLIENT_CA" placeholder:"FILE" help:"Require a certificate of clients, signed by one of these (PEM)."`
	Hosts           []string `name:"host" env:"UMBEL_HOST" placeholder:"NAME" help:"Host name to accept besides localhost, such as that of a proxy. Repeatable."`
	Unauthenticated bool     `env:"UMBEL_UNAUTHENTICATED" help:"Allow addresses other than loopback, and any host name, without authentication."`
	FlowerAPI       bool     `env:"UMBEL_FLOWER_API" help:"Answer the API in the form of Flower (/api/tasks and the like) without authentication too."`
	Prefix          string   `env:"UMBEL_PREFIX" placeholder:"PATH" help:"Path prefix, such as /umbel."`
	Title           string   `env:"UMBEL_TITLE" placeholder:"TEXT" help:"Badge on every page, such as production, that tells this dashboard from others."`
	Color           string   `env:"UMBEL_COLOR" default:"gray" enum:"gray,green,blue,amber,red" help:"Color of the badge: gray, green, blue, amber or red."`
	IssueURL        string   `name:"issue-url" env:"UMBEL_ISSUE_URL" placeholder:"TEMPLATE" help:"Address of a tracker's form, which failure groups link to, such as https://tracker.example/new?title={title}&body={body}. Placeholders: {title}, {body}, {name}, {exception}, {url}, {count}."`
	MaxTasks        int      `env:"UMBEL_MAX_TASKS" default:"200000" help:"Maximum number of tasks in memory. Older ones are read from the history."`
	MaxText         size     `env:"UMBEL_MAX_TEXT" default:"512MiB" placeholder:"SIZE" help:"Memory for arguments, results and tracebacks. Older ones are read from the history."`
	OpenMetrics     bool     `env:"UMBEL_OPEN_METRICS" help:"Let anybody read /metrics, where people have to sign in."`
	ReadOnly        bool     `env:"UMBEL_READ_ONLY" help:"Disable everything that changes the cluster or the history."`
	authFlags
	alertFlags
	keepFlags
	metricsFlags
	notes []string // to log before serving: what has no effect
}

// maxTitle bounds the badge of the pages.
const maxTitle = 40

// serveCmd watches a cluster.
type serveCmd struct {
	clusterFlags
	webFlags
	historyFlags
	clustersFlags
	remotesFlags
	flower       *floweroptions.Settings
	command      bool   // it runs as umbel flower
	Trace        string `env:"UMBEL_TRACE" placeholder:"FILE" help:"Show this trace in place of a cluster. Options of brokers, the history and alerts have no effect then."`
	Node         string `env:"UMBEL_NODE" placeholder:"NAME" help:"Name of this Umbel among those that share the history in PostgreSQL. By default the host name."`
	Peers        bool   `env:"UMBEL_PEERS" default:"true" negatable:"" help:"Agree with other Umbels on the broker which one asks the workers; needs an exchange of its own."`
	EnableEvents bool   `env:"UMBEL_ENABLE_EVENTS" default:"true" negatable:"" help:"Ask workers started without -E to send task events."`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, _ streams, log *slog.Logger) error {
	if c.several() {
		return c.serveClusters(ctx, log)
	}
	if c.Trace != "" {
		return c.serveTrace(ctx, log)
	}
	if err := c.checkFlower(); err != nil {
		return err
	}
	o, err := c.cluster()
	if err != nil {
		return err
	}
	kept, err := c.place(true)
	if err != nil {
		return err
	}
	o.DataDir, o.History = kept.dir, kept.url
	if o.History != "" {
		o.Node = c.node()
	}
	c.flowerAPI(&o.Flower)
	o.LeaveEventsOff, o.Alone = !c.EnableEvents, !c.Peers
	return c.serve(ctx, o, log)
}

// node is the name of this process among those that share a history.
func (c *serveCmd) node() string {
	if c.Node != "" {
		return c.Node
	}
	host, err := os.Hostname()
	if err != nil {
		return "umbel"
	}
	return host
}

// serve opens the history, listens, so that a taken port fails at once, and runs the dashboard until ctx ends. Others
// run beside it.
func (f *webFlags) serve(ctx context.Context, o dashboard.Options, log *slog.Logger, others ...func(context.Context) error) error {
	if err := f.prepare(&o, log); err != nil {
		return err
	}
	u, err := dashboard.Open(o, func() (dashboard.Shown, error) { return dashboard.New(o) }) //nolint:contextcheck // a migration is not cut short
	if err != nil {
		return opened(err)
	}
	return f.show(ctx, u, log, others)
}

// prepare adds to o all that the flags say.
func (f *webFlags) prepare(o *dashboard.Options, log *slog.Logger) error {
	if err := f.complete(o, log); err != nil {
		return err
	}
	var err error
	if o.Alerts, err = f.receivers(); err != nil {
		return err
	}
	o.Retention = new(f.rules(cmp.Or(o.History, o.DataDir)))
	return f.metrics(o)
}

// opened says whether what keeps a dashboard from being made is invalid usage.
func opened(err error) error {
	if _, db := errors.AsType[*dashboard.HistoryError](err); db {
		return err
	}
	if wrong, ok := errors.AsType[*dashboard.SignInError](err); ok {
		return usageError{wrong}
	}
	return usageError{fmt.Errorf("--prefix: %w", err)} // everything else has been checked
}

// complete adds to o where and to whom a dashboard is served.
func (f *webFlags) complete(o *dashboard.Options, log *slog.Logger) error {
	if f.MaxTasks < 1 {
		return usageError{fmt.Errorf("--max-tasks %d is less than 1", f.MaxTasks)}
	}
	if f.MaxText < 1 {
		return usageError{errors.New("--max-text 0 leaves no room for any text")}
	}
	signIn, err := f.signIn()
	if err != nil {
		return usageError{err}
	}
	reachable := loopback(f.Listen)
	if reachable != nil && !f.Unauthenticated && !f.configured() {
		return usageError{fmt.Errorf("--listen %s: %w", f.Listen, reachable)}
	}
	// Users who sign in are known by what no page of another site has, whatever name it calls this server by.
	if anyName := f.Unauthenticated || reachable != nil && len(f.Hosts) == 0; !anyName {
		o.Hosts = append([]string{"localhost", "127.0.0.1", "::1"}, f.Hosts...)
	}
	if f.configured() {
		o.SignIn = &signIn
	}
	o.Prefix, o.MaxTasks, o.MaxText, o.Logger = f.Prefix, f.MaxTasks, int64(f.MaxText), log
	if utf8.RuneCountInString(f.Title) > maxTitle {
		return usageError{fmt.Errorf("--title has more than %d characters", maxTitle)}
	}
	o.Title, o.Color = f.Title, f.Color
	if f.IssueURL != "" {
		if o.Issues, err = issue.Parse(f.IssueURL); err != nil {
			return usageError{fmt.Errorf("--issue-url: %w", err)}
		}
	}
	o.ReadOnly, o.Flower.Unauthenticated = f.ReadOnly, f.FlowerAPI
	o.Redact, err = f.redactFlags.options()
	o.OpenMetrics = f.OpenMetrics
	return err
}

// show serves u until ctx ends, and closes it.
func (f *webFlags) show(ctx context.Context, u dashboard.Shown, log *slog.Logger, others []func(context.Context) error) error {
	err := f.listen(ctx, u, log, others)
	if e := u.Close(); e != nil {
		err = errors.Join(err, fmt.Errorf("close history: %w", e))
	}
	return err
}

// listen serves u until ctx ends.
func (f *webFlags) listen(ctx context.Context, u dashboard.Shown, log *slog.Logger, others []func(context.Context) error) error {
	certificate, err := f.certificate(log)
	if err != nil {
		return err
	}
	proxies, err := auth.ParseNetworks(f.TrustedProxies)
	if err != nil {
		return usageError{fmt.Errorf("--trusted-proxies: %w", err)}
	}
	l, err := listener.Listen(ctx, f.Listen, certificate, proxies)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", f.Listen, err)
	}
	for _, note := range f.notes {
		log.Warn("option has no effect", "reason", note)
	}
	if f.configured() && plain(f.Listen, certificate != nil) {
		log.Warn("passwords and sessions are sent without TLS unless a proxy adds it; see --https-cert")
	}
	log.Info("dashboard ready", "url", l.URL(prefixed(f.Prefix)))
	server := listener.NewServer(u, log)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error { return u.Run(ctx) })
	g.Go(func() error { return tuneCollector(ctx) })
	g.Go(func() error {
		<-ctx.Done()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if err := server.Shutdown(late); err != nil { // somebody's request does not end
			return server.Close()
		}
		return nil
	})
	for _, run := range others {
		g.Go(func() error { return run(ctx) })
	}
	err = g.Wait()
	log.Info("stopped")
	return err
}

// certificate returns that of HTTPS, nil for none.
func (f *webFlags) certificate(log *slog.Logger) (*listener.Certificate, error) {
	files := listener.Files{Cert: f.HTTPSCert, Key: f.HTTPSKey, ClientCA: f.HTTPSClientCA}
	if files == (listener.Files{}) {
		return nil, nil
	}
	c, err := listener.NewCertificate(files, log)
	if err != nil {
		return nil, usageError{fmt.Errorf("--https-cert, --https-key, --https-client-ca: %w", err)}
	}
	return c, nil
}

// loopback refuses addresses that others can reach: there is no authentication yet.
func loopback(address string) error {
	if listener.IsSocket(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("not an address: write host:port, such as 127.0.0.1:5555, or unix:/path")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("nobody signs in and the dashboard would be reachable by others: " +
		"add --htpasswd, --sign-in-with or --user-header, listen on 127.0.0.1, or add --unauthenticated")
}

func prefixed(prefix string) string {
	if prefix == "" || prefix == "/" {
		return "/"
	}
	return "/" + strings.Trim(prefix, "/") + "/"
}
