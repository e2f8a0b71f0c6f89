// Package dashboard puts the parts of Umbel together: broker, history, ingest, command service and web. It owns no
// listener and no signal.
package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/auditlog"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/otlp"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
	"github.com/umbelhq/umbel/web/issue"
)

// Options of a Dashboard, as umbel.Options documents them. One of BrokerURL and Broker is required.
type Options struct {
	BrokerURL                 string
	Broker                    broker.Broker // used instead of BrokerURL if it is set
	Queue                     string
	QueueExpires              time.Duration
	ManagementURL             string
	Exchange, ControlExchange string
	TLS                       broker.TLS
	Redis                     redis.Options // without URL, TLS, Exchange, ControlExchange and Version
	LeaveEventsOff            bool
	Alone                     bool

	ResultBackend                              string
	ResultMaster, ResultKeyPrefix, ResultTable string
	// ResultSentinelUsername and ResultSentinelPassword log in to the sentinels of the result backend.
	ResultSentinelUsername, ResultSentinelPassword string

	OutboxURLs    []string
	OutboxSources []outboxwatch.Source // beside those of OutboxURLs

	BeatURLs    []string
	BeatSources []beat.Source // beside those of BeatURLs

	LocksURL, LocksMaster  string
	LocksPatterns          []string
	LockTTL, CompletionTTL time.Duration
	Locks                  locks.Source // used instead of LocksURL if it is set

	Prefix         string
	Title, Color   string // as in web.Options
	Hosts, Origins []string
	ReadOnly       bool
	OpenMetrics    bool               // as in web.Options
	Auth           auth.Authenticator // as in web.Options, and so are Routes
	// SignIn says how users sign in where Auth is nil, without Store, Audit, Prefix and Logger; nil lets everybody do everything.
	SignIn *auth.Options
	Routes []auth.Route
	Member *web.Member // as in web.Options
	// Remotes are clusters that other Umbels watch, for NewClusters alone.
	Remotes []*web.Remote
	Flower  flower.Settings
	Issues  *issue.Template // as in web.Options, and so is Demo
	Demo    bool

	Metrics    ingest.MetricsOptions
	QueueDrain time.Duration // web.DefaultQueueDrain if zero

	// OTLPEndpoint is the URL of a collector to send spans to, as in otlp.Options; empty for none.
	OTLPEndpoint string
	OTLPHeaders  http.Header // of requests to it

	Redact redact.Options

	Alerts receivers.Config // who is told of alerts
	// AlertInterval is the time between evaluations of alerts, a minute if zero.
	AlertInterval time.Duration

	Marks []history.Mark // to be added, each at its time; oldest first

	DataDir   string
	History   string                  // URL of PostgreSQL, used in place of DataDir if it is set
	Schema    string                  // of History, as in postgres.Options
	Node      string                  // name of this process among those that share History; empty: no other may have it open
	Retention *history.RetentionRules // DefaultRetention if nil
	MaxTasks  int
	MaxText   int64
	Version   string
	Logger    *slog.Logger // slog.Default() if nil
}

// Dashboard watches one Celery cluster and shows it. It is safe for concurrent use.
type Dashboard struct {
	history    history.Store
	ingester   *ingest.Ingester
	reader     *view.Reader
	peers      *peers.Peers         // nil if read-only
	results    results.Backend      // nil if there is none
	outboxes   *outboxwatch.Watcher // nil if there is none
	beatTables *beat.Watcher        // nil if there are none
	locks      locks.Source         // nil if there is none
	commands   *command.Service
	alerts     *evaluate.Service
	auditLog   *auditlog.Log
	signIn     *auth.Service // nil if nobody signs in
	marks      []history.Mark
	reconciler *ingest.Reconciler
	prober     *ingest.ClockProber // nil if read-only
	spans      *otlp.Exporter      // nil if none are sent
	web        *web.Handler
}

// New validates o, opens the history, and starts nothing. Close must follow. Its error is a
// *HistoryError if the history cannot be opened.
func New(o Options) (*Dashboard, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	broker := o.Broker
	if broker == nil {
		var err error
		if broker, err = Broker(o); err != nil {
			return nil, err
		}
	}
	if err := validSignIn(o, nil); err != nil {
		return nil, err
	}
	db, err := openHistory(o)
	if err != nil {
		return nil, &HistoryError{err}
	}
	d := &Dashboard{history: db, marks: o.Marks}
	if err := d.assemble(o, broker); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// validSignIn checks who may sign in before a history is opened. Clusters are the names of those that there are, if they have some.
func validSignIn(o Options, clusters []string) error {
	if o.Auth != nil || o.SignIn == nil {
		return nil
	}
	signIn := *o.SignIn
	signIn.Clusters = clusters
	if err := signIn.Validate(); err != nil {
		return &SignInError{err}
	}
	return nil
}

// openHistory opens the history, in PostgreSQL or in a directory.
func openHistory(o Options) (history.Store, error) {
	dir := cmp.Or(o.DataDir, sqlite.Memory)
	rules := DefaultRetention(cmp.Or(o.History, dir))
	if o.Retention != nil {
		rules = *o.Retention
	}
	if o.History != "" {
		return postgres.Open(context.Background(), postgres.Options{URL: o.History, Schema: o.Schema, Node: o.Node, Rules: rules, Logger: o.Logger})
	}
	return sqlite.Open(context.Background(), sqlite.Options{Dir: dir, ReplaceDamaged: true, Rules: rules, Logger: o.Logger})
}

// DefaultRetention returns the rules that umbel.DefaultRetention documents.
func DefaultRetention(dataDir string) history.RetentionRules {
	const day = 24 * time.Hour
	r := history.RetentionRules{Succeeded: 7 * day, Failed: 30 * day, Lost: 7 * day, Events: 3 * day, Workers: 7 * day, Commands: 90 * day, MaxSize: 2 << 30}
	if dataDir == "" || dataDir == sqlite.Memory {
		r.MaxSize = 512 << 20
	}
	return r
}

// HistoryError reports that the history cannot be opened. It wraps history.ErrLocked if another process uses it, and
// history.ErrNewerVersion if a newer version wrote it.
type HistoryError struct{ err error }

// Error returns the cause as text.
func (e *HistoryError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *HistoryError) Unwrap() error { return e.err }

// SignInError reports that users cannot sign in as Options.SignIn says.
type SignInError struct{ err error }

// Error returns the cause as text.
func (e *SignInError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *SignInError) Unwrap() error { return e.err }

// assemble builds the parts on the open history.
func (d *Dashboard) assemble(o Options, broker broker.Broker) (err error) {
	redactor, err := redact.New(o.Redact)
	if err != nil {
		return err
	}
	limits := state.Options{MaxTasks: o.MaxTasks, MaxText: o.MaxText}
	if d.results, err = Results(o); err != nil {
		return err
	}
	if d.results != nil {
		d.results = results.WithArguments(d.results, learn(d.history, redactor), o.Logger)
	}
	if err := d.watchOutboxes(o, redactor); err != nil {
		return err
	}
	if err := d.readBeatTables(o); err != nil {
		return err
	}
	d.auditLog, err = auditlog.New(auditlog.Options{Store: d.history, Redact: redactor.Text, Logger: o.Logger})
	if err != nil {
		return err
	}
	if err := d.auditRules(context.Background(), redactor); err != nil {
		return err
	}
	client, err := remote.New(remote.Options{Broker: broker, Redactor: redactor, Logger: o.Logger})
	if err != nil {
		return err
	}
	ingesting := ingest.Options{
		Broker: broker, Store: d.history, State: limits, EnableEvents: !o.LeaveEventsOff && !o.ReadOnly, Control: client, Redactor: redactor, Metrics: o.Metrics, Logger: o.Logger,
	}
	if shared, ok := d.history.(ingest.Shared); ok && o.Node != "" {
		ingesting.Shared = shared
	}
	if !o.ReadOnly { // which asks nothing
		d.peers = peers.New(peers.Options{Broker: broker, Off: aloneBecause(o), Logger: o.Logger})
		ingesting.Leader = d.peers
	}
	if err := d.exportSpans(o, &ingesting); err != nil {
		return err
	}
	d.ingester, err = ingest.New(ingesting)
	if err != nil {
		return err
	}
	reader, err := view.New(d.ingester, d.history, nil)
	if err != nil {
		return err
	}
	d.reader = reader
	if o.Member != nil {
		reader.SetCluster(o.Member.Name)
	}
	if d.outboxes != nil {
		reader.WatchOutboxes(d.outboxes)
	}
	var watcher *locks.Watcher
	if d.locks, err = Locks(o); err != nil {
		return err
	}
	if d.locks != nil {
		watcher, err = locks.New(locks.Options{Source: d.locks, Tasks: reader, Rollups: d.history, LockTTL: o.LockTTL, CompletionTTL: o.CompletionTTL, Redactor: redactor})
		if err != nil {
			return err
		}
	}
	d.commands, err = command.New(command.Options{
		Client: client, Outbox: d.history, Tasks: reader, Forgetter: d.ingester, Reporter: d.ingester, Dismisser: d.ingester, Rules: d.history, Results: d.results, Locks: watcher,
		Outboxes: d.outboxes, Receivers: o.Alerts.Receivers,
		QueueCounters: d.ingester.QueueCounters, EventSerializer: d.ingester.EventSerializer, HiddenQueues: []string{nodeQueue(o)}, ReadOnly: o.ReadOnly, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	if err := d.newAlerts(o, reader); err != nil {
		return err
	}
	inspector := d.commands.Inspector
	reader.SetAcksLate(inspector.AcksLate)
	if o.ReadOnly {
		inspector = nil
	} else {
		d.prober = ingest.NewClockProber(d.ingester, client)
	}
	d.reconciler = ingest.NewReconciler(d.ingester, inspector, d.commands.Results)
	if o.Auth == nil && o.SignIn != nil {
		signIn := *o.SignIn
		signIn.Store, signIn.Shared, signIn.Audit, signIn.Prefix, signIn.Logger = d.history, o.Node != "", d.auditLog, o.Prefix, o.Logger
		if d.signIn, err = auth.New(context.Background(), signIn); err != nil {
			return &SignInError{err}
		}
		o.Auth = d.signIn
	}
	d.web, err = web.New(web.Options{
		Backend: reader, Past: reader.At, Commands: d.commands, Alerts: d.alerts, AppOutboxes: d.outboxes, BeatTables: d.beatTables, Peers: d.peers, ReadOnly: o.ReadOnly,
		Auth: o.Auth, Routes: o.Routes, OpenMetrics: o.OpenMetrics, Member: o.Member,
		Prefix: o.Prefix, Title: o.Title, Color: o.Color, Version: o.Version, Logger: o.Logger, Hosts: o.Hosts, Origins: o.Origins,
		Limits: limits, AuditLog: d.auditLog, Redactor: redactor, Flower: o.Flower, Issues: o.Issues, Demo: o.Demo,
		Metrics: web.MetricsOptions{Read: d.ingester.Metrics, QueueDrain: o.QueueDrain, Spans: d.spanStats()},
	})
	return err
}

// learn returns what saves the arguments of results as calls. Those with secrets are left out: a digest of a short secret
// reveals it to whoever tries all.
func learn(db history.Store, r *redact.Redactor) func(ctx context.Context, taskID string, args, kwargs []byte) error {
	return func(ctx context.Context, taskID string, args, kwargs []byte) error {
		if _, _, redacted := r.Arguments("", args, kwargs); redacted {
			return nil
		}
		err := db.LearnArguments(ctx, taskID, args, kwargs)
		if errors.Is(err, history.ErrLocked) { // another Umbel leads, which learns what it reads
			return nil
		}
		return err
	}
}

// aloneBecause says why Umbel does not agree with others who asks the workers, empty if it does.
func aloneBecause(o Options) string {
	switch {
	case o.Alone:
		return "This Umbel does not agree with others on who asks the workers (--no-peers): it inspects them whoever else does."
	case o.LeaveEventsOff: // as leader, it would keep others from asking for events
		return "This Umbel does not ask workers for events (--no-enable-events), so it does not agree with others on who asks: it inspects workers " +
			"whoever else does."
	}
	return ""
}

// watchOutboxes prepares to watch the outboxes of applications, if there are any.
func (d *Dashboard) watchOutboxes(o Options, r *redact.Redactor) error {
	sources, err := Outboxes(o)
	if err != nil || len(sources) == 0 {
		return err
	}
	d.outboxes, err = outboxwatch.New(outboxwatch.Options{Sources: sources, Samples: d.history, Redactor: r, Logger: o.Logger})
	return err
}

// Run restores the history, then watches the cluster and keeps pages live until ctx ends. It returns nil after an
// orderly stop.
func (d *Dashboard) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.ingester.Run(ctx) })
	if d.peers != nil {
		g.Go(func() error { return d.peers.Run(ctx) })
	}
	g.Go(func() error { return d.commands.Run(ctx) })
	g.Go(func() error { return d.alerts.Run(ctx) })
	g.Go(func() error { return d.reconciler.Run(ctx) })
	if d.prober != nil {
		g.Go(func() error { return d.prober.Run(ctx) })
	}
	g.Go(func() error { return d.web.Run(ctx) })
	if d.spans != nil {
		g.Go(func() error { return d.spans.Run(ctx) })
	}
	g.Go(func() error { return d.auditLog.Run(ctx) })
	g.Go(func() error { return d.mark(ctx) })
	g.Go(func() error { return d.listen(ctx) })
	if d.signIn != nil {
		g.Go(func() error { return d.signIn.Run(ctx) })
	}
	if d.outboxes != nil {
		g.Go(func() error { return d.outboxes.Run(ctx) })
	}
	if d.beatTables != nil {
		g.Go(func() error { return d.beatTables.Run(ctx) })
	}
	return g.Wait()
}

// mark adds the marks of Options, each at its time.
func (d *Dashboard) mark(ctx context.Context) error {
	for _, m := range d.marks {
		select {
		case <-time.After(time.Until(m.At)):
		case <-ctx.Done():
			return nil
		}
		if _, err := d.reader.History().AddMark(ctx, m); err != nil && ctx.Err() == nil {
			return fmt.Errorf("add mark: %w", err)
		}
	}
	return nil
}

// Close closes the history, after Run has returned and the last request was answered.
func (d *Dashboard) Close() error {
	var err error
	if d.results != nil {
		err = d.results.Close()
	}
	if d.outboxes != nil {
		err = errors.Join(err, d.outboxes.Close())
	}
	if d.beatTables != nil {
		err = errors.Join(err, d.beatTables.Close())
	}
	if d.locks != nil {
		err = errors.Join(err, d.locks.Close())
	}
	return errors.Join(err, d.history.Close())
}

// ServeHTTP shows the pages, sockets and API under the prefix.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.web.ServeHTTP(w, r) }
