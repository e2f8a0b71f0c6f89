// Package umbel is the live dashboard for Celery, ready to be mounted in any Go program: New checks the options and opens
// the history, Run watches the cluster, ServeHTTP shows it, Close ends it. It owns no listener and no signal.
//
// The compatibility promise of Umbel's versions covers this package, the JSON API and the command line. All other packages
// may change in any release.
package umbel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
	"github.com/umbelhq/umbel/web/issue"
)

// Options of an Umbel. BrokerURL is required.
type Options struct {
	// BrokerURL is what the workers' broker_url is: amqp://user:password@host:5672/vhost, amqps://,
	// redis://user:password@host:6379/0, rediss://, redis+socket:// or sentinel://. The query may hold TLS files
	// (ssl_ca_certs, ssl_certfile, ssl_keyfile).
	BrokerURL string

	// Queue names a durable queue on RabbitMQ that keeps events while nobody reads them; empty
	// means a queue that goes away with the connection. Redis keeps no events.
	Queue string
	// QueueExpires is how long RabbitMQ keeps Queue unread, 24 h if zero.
	QueueExpires time.Duration
	// ManagementURL is where RabbitMQ's management API is, such as http://user:password@host:15672, for rates and
	// unacknowledged messages of queues; empty means that there is none.
	ManagementURL string
	// Exchange and ControlExchange are Celery's event_exchange and control_exchange, celeryev and
	// celery if empty.
	Exchange, ControlExchange string
	// TLS secures amqps://, rediss:// and sentinel:// URLs.
	TLS TLS
	// Redis repeats Celery's broker_transport_options, where the broker is Redis.
	Redis RedisOptions
	// LeaveEventsOff keeps Umbel from asking workers started without -E to send task events.
	LeaveEventsOff bool
	// Alone keeps Umbel from agreeing with others on the broker which one asks the workers: this one asks, whoever else does.
	Alone bool

	// ResultBackend is what the workers' result_backend is, for results to be shown beside what events say: redis://,
	// rediss://, redis+socket://, sentinel://, db+sqlite://, db+postgresql://, or, for django-celery-results,
	// django-db+postgresql://. Empty shows none.
	ResultBackend string
	// ResultMaster and ResultKeyPrefix are master_name and global_keyprefix of result_backend_transport_options,
	// ResultTable is the task's table in database_table_names.
	ResultMaster, ResultKeyPrefix, ResultTable string
	// ResultSentinelUsername and ResultSentinelPassword log in to the sentinels of the result backend.
	ResultSentinelUsername, ResultSentinelPassword string

	// OutboxURLs are databases with outboxes of applications (django-celery-outbox) to watch:
	// postgres://user:password@host/name or sqlite:////path. The query may set name, schema, table, dead_letter_table
	// and stale_timeout.
	OutboxURLs []string

	// BeatURLs are databases with the tables of django-celery-beat to show on Schedules: postgres://user:password@host/name or
	// sqlite:////path. The query may set name and schema.
	BeatURLs []string

	// LocksURL is the Redis in which applications keep the locks of tasks that run once: redis://, rediss://, redis+socket:// or
	// sentinel://. Empty means the broker, if it is Redis, else the result backend, if it is. LocksNone shows none.
	LocksURL string
	// LocksMaster is the name of the master where LocksURL is sentinel://.
	LocksMaster string
	// LocksPatterns are the glob patterns of the keys of locks. If it is empty, those of lock:celery:exec:*, celery-once and
	// celery-singleton are shown.
	LocksPatterns []string
	// LockTTL and CompletionTTL are the times after which lock:celery:exec:* keys expire, 10 min and 24 h if zero. How old a lock
	// is follows from them where no event of its task tells. Negative means that they vary.
	LockTTL, CompletionTTL time.Duration

	// Prefix is the path that Umbel is mounted under, such as /ops/celery; empty means the root.
	Prefix string
	// Hosts are the names, without port, by which requests may call Umbel; others are refused. Empty
	// accepts any: the host program decides who may ask.
	Hosts []string
	// Origins are those of pages besides Umbel's own that may open live sockets, such as https://ops.example:8443:
	// those of proxies that hide their name from Umbel.
	Origins []string

	// ReadOnly leaves out everything that changes the cluster or the history. Workers are not asked to send task
	// events then.
	ReadOnly bool
	// Authorize returns who makes a request, what they may do and see. It is called for every request, and again while a page is
	// open, by several goroutines. An error, or a Grant without Role, refuses the request. Nil lets everybody do and see everything:
	// the host program decides who may ask.
	Authorize func(r *http.Request) (Grant, error)

	// FlowerAPI opens the paths of Flower's API under /api/, such as /api/tasks, where Authorize is nil. They answer 401 otherwise.
	FlowerAPI bool

	// IssueURL is the address of a tracker's form, which failure groups link to, such as
	// https://tracker.example/new?title={title}&body={body}. Placeholders are {title}, {body}, {name}, {exception}, {url} and
	// {count}; what replaces them is escaped. Empty leaves the links out.
	IssueURL string

	// Redact are rules for what is taken out of events, results, messages and settings before anything else sees them, beside
	// the usual secrets, such as "key ssn" or "task billing.* arg 0"; NoRedactDefaults leaves those in. Changed rules hold for
	// what is received from then on.
	Redact           []string
	NoRedactDefaults bool

	// DataDir is where the history is kept, in a file that one Umbel at a time may use. Empty, or :memory:,
	// keeps it in memory until Close.
	DataDir string
	// History is the URL of a database in PostgreSQL, version 15 or later, where the history is kept in place of DataDir, such as
	// postgres://user:password@host/database. One Umbel at a time may use it, unless each has a Node.
	History string
	// Node names this Umbel among those that share History, of which one leads and the others take over; each has its own. Empty: no
	// other may use History.
	Node string
	// Retention says how long to keep what, DefaultRetention if nil.
	Retention *Retention

	// RuntimeBuckets are the upper bounds in seconds of the buckets of flower_task_runtime_seconds, Flower's if empty. They are
	// positive and ascend.
	RuntimeBuckets []float64
	// PurgeOfflineWorkers is after how much time without events the metrics of an offline worker go; 0 when it is forgotten.
	PurgeOfflineWorkers time.Duration
	// QueueDrain is the time within which the workers that metrics say are needed empty a queue, a minute if zero.
	QueueDrain time.Duration

	MaxTasks int          // finished tasks held in memory for speed, 200,000 if zero; all of them are in the history
	MaxText  int64        // bytes of arguments, results and tracebacks kept in memory, 512 MiB if zero
	Version  string       // shown on the pages and in the API
	Logger   *slog.Logger // slog.Default() if nil; slog.New(slog.DiscardHandler) for none
}

// Grant says who makes a request, and what they may do and see.
type Grant struct {
	User    string // name for the audit log, at most 256 bytes
	Role    Role   // empty if they are not signed in
	Payload bool   // arguments, results and exceptions of tasks may be seen
}

// Role is what users may do. Each contains those before it.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // look and export
	Operator Role = "operator" // retry, revoke and publish tasks, control workers
	Admin    Role = "admin"    // shut workers down, purge queues, release locks, read the audit log
)

// authorizer is the Authenticator of a host program.
type authorizer func(r *http.Request) (Grant, error)

// Authenticate implements auth.Authenticator.
func (f authorizer) Authenticate(r *http.Request) (auth.Grant, error) {
	g, err := f(r)
	if err != nil {
		return auth.Grant{}, err
	}
	return auth.Grant{User: g.User, Method: "host", Audience: auth.Audience{Role: auth.Role(g.Role), Payload: g.Payload}}, nil
}

// LocksNone is the LocksURL that shows no locks.
const LocksNone = dashboard.LocksNone

// TLS secures the connection to the broker. The zero value trusts the system's authorities.
type TLS struct {
	CAFile     string // PEM file of the authorities to trust instead of the system's
	CertFile   string // PEM file of the client's certificate, with KeyFile
	KeyFile    string // PEM file of the client's key
	ServerName string // name in the broker's certificate, if it is not the host of the URL
	// AnyName accepts a certificate for another name, if it is signed by a trusted authority.
	AnyName bool
	// InsecureSkipVerify accepts any certificate, and so anybody in between.
	InsecureSkipVerify bool
}

// RedisOptions are the workers' broker_transport_options. The zero value is Celery's default. Nothing on the wire shows
// them, so they must be the same as the workers'.
type RedisOptions struct {
	MasterName                         string // master_name, required with sentinel://
	SentinelUsername, SentinelPassword string // of the sentinels themselves
	KeyPrefix                          string // global_keyprefix
	// FanoutPrefix is fanout_prefix: empty means "/{db}.", "\x00" means False. As in Python, {{ and }} stand for braces.
	FanoutPrefix                string
	NoFanoutPatterns            bool          // fanout_patterns is False
	Separator                   string        // sep, "\x06\x16" if empty
	PrioritySteps               []int         // priority_steps, 0 3 6 9 if empty
	UnackedKey, UnackedIndexKey string        // unacked_key and unacked_index_key, "unacked" and "unacked_index" if empty
	VisibilityTimeout           time.Duration // visibility_timeout, 1 h if zero
}

// Retention says how long to keep what, from the receipt of the newest event. 0 is forever.
type Retention struct {
	Succeeded time.Duration // tasks that succeeded
	Failed    time.Duration // tasks that failed, were revoked or rejected
	Lost      time.Duration // unfinished tasks since they were lost or dismissed
	Events    time.Duration // events of finished tasks that no execution shows
	Workers   time.Duration // offline workers, since their last event
	Commands  time.Duration // finished commands; the audit log stays
	MaxSize   int64         // bytes on disk without those of active tasks; over it, the oldest finished and lost tasks go
}

// DefaultRetention returns the retention of a history in dataDir: tasks that succeeded 7 days, others that ended 30, lost
// ones 7, events that no execution shows 3, workers 7, commands 90, all within 2 GiB on disk or 512 MiB in memory.
func DefaultRetention(dataDir string) Retention {
	return Retention(dashboard.DefaultRetention(dataDir))
}

// Why the history cannot be opened, beside the operating system's errors.
var (
	ErrLocked = errors.New("the history is in use by another process")
	ErrNewer  = errors.New("a newer version of Umbel wrote the history")
	// ErrUnreachable means that PostgreSQL does not answer at present: try again.
	ErrUnreachable = errors.New("the history cannot be reached at present")
)

// HistoryError reports that the history cannot be opened. It matches ErrLocked, ErrNewer or ErrUnreachable, or none of them.
type HistoryError struct{ err error }

// Error returns the cause as text.
func (e *HistoryError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *HistoryError) Unwrap() error { return e.err }

// Is reports whether target is the sentinel of the cause.
func (e *HistoryError) Is(target error) bool {
	return target == ErrLocked && errors.Is(e.err, history.ErrLocked) || target == ErrNewer && errors.Is(e.err, history.ErrNewerVersion) ||
		target == ErrUnreachable && errors.Is(e.err, history.ErrUnreachable)
}

// Umbel watches one Celery cluster and shows it. It is safe for concurrent use.
type Umbel struct{ dashboard *dashboard.Dashboard }

// New validates o, opens the history, and starts nothing. Close must follow. Its error is a *HistoryError if the history
// cannot be opened.
func New(o Options) (*Umbel, error) {
	var authenticator auth.Authenticator
	if o.Authorize != nil {
		authenticator = authorizer(o.Authorize)
	}
	var issues *issue.Template
	if o.IssueURL != "" {
		var err error
		if issues, err = issue.Parse(o.IssueURL); err != nil {
			return nil, fmt.Errorf("IssueURL: %w", err)
		}
	}
	d, err := dashboard.New(dashboard.Options{
		Auth:      authenticator,
		BrokerURL: o.BrokerURL, Queue: o.Queue, QueueExpires: o.QueueExpires, ManagementURL: o.ManagementURL,
		Exchange: o.Exchange, ControlExchange: o.ControlExchange, TLS: broker.TLS(o.TLS), LeaveEventsOff: o.LeaveEventsOff, Alone: o.Alone,
		Redis: redis.Options{
			MasterName: o.Redis.MasterName, SentinelUsername: o.Redis.SentinelUsername, SentinelPassword: o.Redis.SentinelPassword,
			KeyPrefix: o.Redis.KeyPrefix, FanoutPrefix: o.Redis.FanoutPrefix, NoFanoutPatterns: o.Redis.NoFanoutPatterns,
			Separator: o.Redis.Separator, PrioritySteps: o.Redis.PrioritySteps, UnackedKey: o.Redis.UnackedKey,
			UnackedIndexKey: o.Redis.UnackedIndexKey, VisibilityTimeout: o.Redis.VisibilityTimeout,
		},
		ResultBackend: o.ResultBackend, ResultMaster: o.ResultMaster, ResultKeyPrefix: o.ResultKeyPrefix, ResultTable: o.ResultTable,
		ResultSentinelUsername: o.ResultSentinelUsername, ResultSentinelPassword: o.ResultSentinelPassword,
		OutboxURLs: o.OutboxURLs, BeatURLs: o.BeatURLs, LocksURL: o.LocksURL, LocksMaster: o.LocksMaster, LocksPatterns: o.LocksPatterns, LockTTL: o.LockTTL, CompletionTTL: o.CompletionTTL,
		Metrics: ingest.MetricsOptions{RuntimeBuckets: o.RuntimeBuckets, PurgeOfflineWorkers: o.PurgeOfflineWorkers}, QueueDrain: o.QueueDrain,
		Flower: flower.Settings{Unauthenticated: o.FlowerAPI},
		Issues: issues, Prefix: o.Prefix, Hosts: o.Hosts, Origins: o.Origins, ReadOnly: o.ReadOnly, DataDir: o.DataDir, History: o.History, Node: o.Node,
		Redact:    redact.Options{NoDefaults: o.NoRedactDefaults, Rules: o.Redact},
		Retention: (*history.RetentionRules)(o.Retention), MaxTasks: o.MaxTasks, MaxText: o.MaxText, Version: o.Version, Logger: o.Logger,
	})
	if failed, ok := errors.AsType[*dashboard.HistoryError](err); ok {
		return nil, &HistoryError{failed}
	}
	if err != nil {
		return nil, err
	}
	return &Umbel{d}, nil
}

// Run restores the history, then watches the cluster and keeps pages live until ctx ends. It returns nil after an orderly
// stop.
func (u *Umbel) Run(ctx context.Context) error { return u.dashboard.Run(ctx) }

// ServeHTTP serves the pages, sockets and API under the prefix.
func (u *Umbel) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.dashboard.ServeHTTP(w, r) }

// Close closes the history, after Run has returned and the last request was answered.
func (u *Umbel) Close() error { return u.dashboard.Close() }
