package remote_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
	"github.com/umbelhq/umbel/monitor/broker/redis"
	"github.com/umbelhq/umbel/monitor/remote"
)

// timeout bounds every wait for a program, on a machine that is busy.
const timeout = 3 * time.Minute

// site is a broker of its own for one test, with real workers.
type site struct {
	broker broker.Broker
	env    []string // of workers
	python string
	client *remote.Client
}

// onRabbitMQ has a virtual host of its own. Its workers know the broker by two URLs, as for failover.
func onRabbitMQ(t *testing.T) *site {
	t.Helper()
	url := testenv.VirtualHost(t)
	b, err := rabbitmq.New(rabbitmq.Options{URL: url})
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	return newSite(t, b, "CELERY_BROKER_URL="+url+";"+url)
}

// onRedis has keys and channels of its own.
func onRedis(t *testing.T) *site {
	t.Helper()
	o, prefix := testenv.Redis(t), "umbel-test-"+rand.Text()+":"
	b, err := redis.New(redis.Options{URL: o, KeyPrefix: prefix})
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	parsed, err := client.ParseURL(o)
	if err != nil {
		t.Fatalf("parse the broker's URL: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
		defer cancel()
		c := client.NewClient(parsed)
		defer func() { _ = c.Close() }()
		keys, err := c.Keys(ctx, prefix+"*").Result()
		if err == nil && len(keys) > 0 {
			err = c.Del(ctx, keys...).Err()
		}
		if err != nil {
			t.Errorf("delete keys: %v", err)
		}
	})
	return newSite(t, b, "CELERY_BROKER_URL="+o, "APP_PREFIX="+prefix)
}

func newSite(t *testing.T, b broker.Broker, env ...string) *site {
	t.Helper()
	s := &site{broker: b, python: testenv.Python(t), client: newClient(t, b)}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "CELERY_") && !strings.HasPrefix(e, "UMBEL_") {
			s.env = append(s.env, e)
		}
	}
	s.env = append(append(s.env, "C_FORCE_ROOT=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore"), env...)
	s.start(t, s.client.Run)
	s.await(t, "a control connection", func() bool { return s.client.Connected() })
	return s
}

// start runs something until the test ends.
func (s *site) start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// await polls.
func (s *site) await(t *testing.T, what string, there func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * ms)
	defer tick.Stop()
	late := time.After(timeout)
	for !there() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("no %s within %v", what, timeout)
		}
	}
}

// output is what a program has written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// process is a worker.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// kill ends the worker and its children.
func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
	}
}

// spawn starts a worker and does not wait for it.
func (s *site) spawn(t *testing.T, node, env string, flags ...string) *process {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	queue, _, _ := strings.Cut(node, "@")
	args := append([]string{"-m", "celery", "-A", "app", "worker", "-l", "INFO", "-n", node, "-Q", queue}, flags...)
	written := &output{}
	p := &process{cmd: exec.Command(s.python, args...), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, slices.Concat(s.env, []string{env}), written
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // a child may outlive it with the same standard error
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start worker: %v", err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", node, written.text.String())
		}
	})
	return p
}

// ask asks workers, with time for those on a busy machine.
func (s *site) ask(t *testing.T, method string, args map[string]any, nodes ...string) remote.Replies {
	t.Helper()
	m, ok := remote.Lookup(method)
	if !ok {
		t.Fatalf("there is no method %s", method)
	}
	checked, err := m.Check(args)
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	a, err := s.client.Call(t.Context(), remote.Request{Method: method, Arguments: checked, Destination: nodes, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("ask: %v", err)
	}
	return a
}

// ready waits until workers reply.
func (s *site) ready(t *testing.T, nodes ...string) {
	t.Helper()
	s.await(t, "answer of "+strings.Join(nodes, ", "), func() bool {
		a, err := s.client.Call(t.Context(), remote.Request{Method: "ping", Destination: nodes, Timeout: time.Second})
		if err != nil {
			t.Fatalf("ping: %v", err)
		}
		return len(a.Missing) == 0
	})
}
