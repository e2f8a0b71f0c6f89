package command_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/remote"
	results "github.com/umbelhq/umbel/monitor/results/redis"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// cluster is a real Celery app with its broker, and everything that watches it and acts on it.
type cluster struct {
	*command.Service

	kind    string // RabbitMQ, Redis
	python  string
	dir     string // of the app
	env     []string
	broker  broker.Broker
	monitor *ingest.Ingester
	reader  *view.Reader
	options command.Options // of the service
	stop    func()          // ends the service
}

// redisURL is a database that no other tests use.
func redisURL(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(testenv.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/11"
	return u.String()
}

// clusterOn returns a cluster on one kind of broker, apart from all others there, without workers.
func clusterOn(t *testing.T, kind string) *cluster {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{kind: kind, python: testenv.Python(t), dir: dir}
	prefix, backend := "umbel-action-"+strings.ToLower(rand.Text()[:8])+".", redisURL(t)
	broker := backend
	if kind == "RabbitMQ" {
		broker = testenv.VirtualHost(t)
		c.broker, err = rabbitmq.New(rabbitmq.Options{URL: broker})
	} else {
		c.broker, err = redis.New(redis.Options{URL: broker, KeyPrefix: prefix})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sweep(t, backend, prefix) })
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "UMBEL_") && !strings.HasPrefix(e, "CELERY_") {
			c.env = append(c.env, e)
		}
	}
	c.env = append(c.env, "ACTION_BROKER="+broker, "ACTION_BACKEND="+backend, "ACTION_PREFIX="+prefix, "C_FORCE_ROOT=1",
		"PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=ignore")
	c.watch(t, backend, prefix)
	return c
}

// sweep removes the keys of a test.
func sweep(t *testing.T, address, prefix string) {
	t.Helper()
	o, err := goredis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
	defer cancel()
	r := goredis.NewClient(o)
	keys := r.Scan(ctx, 0, prefix+"*", 1_000).Iterator()
	for keys.Next(ctx) {
		r.Del(ctx, keys.Val())
	}
	if err := errors.Join(keys.Err(), r.Close()); err != nil {
		t.Errorf("sweep keys %s*: %v", prefix, err)
	}
}

// watch starts what watches the cluster and acts on it.
func (c *cluster) watch(t *testing.T, backend, prefix string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := results.New(results.Options{URL: backend, KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	client, err := remote.New(remote.Options{Broker: c.broker})
	if err != nil {
		t.Fatal(err)
	}
	c.monitor, err = ingest.New(ingest.Options{
		Broker: c.broker, Store: db, EnableEvents: true,
		Control: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.reader, err = view.New(c.monitor, db, nil); err != nil {
		t.Fatal(err)
	}
	c.options = command.Options{Client: client, Outbox: db, Tasks: c.reader, Results: stored}
	ctx, end := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return c.monitor.Run(ctx) })
	c.serve(t)
	t.Cleanup(func() {
		end()
		c.stop()
		if err := errors.Join(g.Wait(), stored.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "line", func() bool { return c.Client.Connected() && c.monitor.Health().Broker.Connected })
}

// serve starts the service.
func (c *cluster) serve(t *testing.T) {
	t.Helper()
	s, err := command.New(c.options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c.Service, c.stop = s, sync.OnceFunc(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// restart ends the service as a restart of Umbel does, and starts another one on the same outbox.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	c.stop()
	client, err := remote.New(remote.Options{Broker: c.broker})
	if err != nil {
		t.Fatal(err)
	}
	c.options.Client = client
	c.serve(t)
}

// published are the ids of the tasks that Celery's own client publishes.
type published struct {
	Chain, Group []string
	Parked       string
}

// client has Celery publish.
func (c *cluster) client(t *testing.T) (p published) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.python, "tasks.py")
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// process is a worker.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what the worker says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) says(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text.String(), s)
}

// work starts a worker and waits until it is ready and known.
func (c *cluster) work(t *testing.T, node string, flags ...string) *process {
	t.Helper()
	args := append([]string{"-m", "celery", "-A", "tasks", "worker", "-l", "INFO", "-E", "-n", node}, flags...)
	p := &process{cmd: exec.Command(c.python, args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr, p.cmd.WaitDelay = c.env, c.dir, p, time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // it is killed in the end
	}()
	t.Cleanup(func() {
		select {
		case <-p.exited:
		default:
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.exited
		}
		if t.Failed() {
			text := p.text.String()
			t.Logf("%s wrote:\n%s", node, text[max(0, len(text)-6_000):])
		}
	})
	eventually(t, node+" ready", func() bool { return p.says(node + " ready.") })
	eventually(t, node+" online", func() (online bool) {
		c.monitor.View(func(s state.View) {
			w, ok := s.Worker(node)
			online = ok && w.Status == state.Online
		})
		return online
	})
	c.told(t)
	return p
}

// told waits until all workers have told what they have. One that is busy when it is asked is asked again after a while.
func (c *cluster) told(t *testing.T) {
	t.Helper()
	eventually(t, "answer of all workers", func() bool {
		known := c.Inspector.Topology(t.Context())
		return len(known.Expected) > 0 && len(known.Missing) == 0
	})
}

// alive reports whether the worker has not ended.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// task waits until a task is in one of these states.
func (c *cluster) task(t *testing.T, id string, states ...state.State) state.Task {
	t.Helper()
	var found state.Task
	eventually(t, string(states[0])+" of "+id, func() bool {
		one, err := c.reader.Task(t.Context(), id)
		if err != nil && !errors.Is(err, history.ErrNotFound) {
			t.Fatal(err)
		}
		found = one
		return slices.Contains(states, one.State)
	})
	return found
}

// publish has a task published, and returns its id.
func (c *cluster) publish(t *testing.T, o command.TaskRequest) string {
	t.Helper()
	r, err := c.Publish(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	return c.settled(t, r)[0].TaskID
}

// settled returns the commands of an order once all were sent and answered.
func (c *cluster) settled(t *testing.T, r command.Receipt) []history.Command {
	t.Helper()
	var ids []int64
	for _, one := range r.Commands {
		ids = append(ids, one.ID)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	list, err := c.Relay.Wait(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.State != history.CommandDone {
			t.Errorf("%s for %s is %s: %s %v", one.Summary, one.Target, one.State, one.LastError, one.Replies)
		}
	}
	return list
}

// control has workers told something, and returns what they answered, by worker.
func (c *cluster) control(t *testing.T, method string, args map[string]any, workers ...string) map[string]string {
	t.Helper()
	r, err := c.Control(t.Context(), by, command.ControlRequest{Method: method, Arguments: args, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(map[string]string)
	for _, one := range c.settled(t, r) {
		for _, a := range one.Replies {
			answers[a.Node] = a.Text
			if !a.OK {
				answers[a.Node] = "error: " + a.Text
			}
		}
	}
	return answers
}

// gate is a file that the task hold waits for.
type gate string

func newGate(t *testing.T) gate { t.Helper(); return gate(filepath.Join(t.TempDir(), "open")) }

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(g), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
