package relay_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// timeout bounds every wait for something that should happen soon, on a machine that is busy.
const timeout = 3 * time.Minute

// eventually waits until check has no more to say against it.
func eventually(tb testing.TB, check func() error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("after %v: %v", timeout, err)
		}
	}
}

// server is a Redis of a test's own, which can be killed and started again.
type server struct {
	dir, address, url string
	client            *client.Client
	cmd               *exec.Cmd
}

// newServer starts one that keeps what it has acknowledged.
func newServer(tb testing.TB) *server {
	tb.Helper()
	testenv.Redis(tb) // there is one
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{dir: tb.TempDir(), address: l.Addr().String()}
	s.url = "redis://" + s.address + "/0"
	s.client = client.NewClient(&client.Options{Addr: s.address, Protocol: 2})
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	s.start(tb)
	tb.Cleanup(func() {
		_ = s.client.Close()
		s.kill()
	})
	return s
}

func (s *server) start(tb testing.TB) {
	tb.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		tb.Fatal(err)
	}
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--appendonly", "yes", "--save", "")
	if err := s.cmd.Start(); err != nil {
		tb.Fatalf("start redis-server: %v", err)
	}
	eventually(tb, func() error { return s.client.Ping(tb.Context()).Err() })
}

// kill ends it with SIGKILL.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// work starts a Celery worker that takes tasks from a queue until the test ends, and waits until it does.
func work(tb testing.TB, broker, counts, queue string) {
	tb.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(testenv.Python(tb), "-m", "celery", "-A", "once", "worker", "-l", "INFO", "-P", "solo",
		"-n", queue+"@test", "-Q", queue, "--without-mingle", "--without-gossip")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CELERY_BROKER_URL="+broker, "COUNTS_URL="+counts, "C_FORCE_ROOT=1",
		"PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=ignore")
	said, err := cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start worker: %v", err)
	}
	var text strings.Builder
	ready := make(chan bool, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		found := false
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if found {
				continue
			}
			fmt.Fprintln(&text, lines.Text())
			if found = strings.Contains(lines.Text(), "@test ready."); found {
				ready <- true
			}
		}
		if !found {
			ready <- false
		}
	})
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		reading.Wait()
		_ = cmd.Wait()
	})
	select {
	case ok := <-ready:
		if !ok {
			tb.Fatalf("worker ended:\n%s", text.String())
		}
	case <-time.After(timeout):
		tb.Fatal("worker does not begin")
	}
}

// proxy stands before a broker, and can be cut.
type proxy struct {
	target, address, url string

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	conns    []net.Conn
	wg       sync.WaitGroup
}

// newProxy stands before the broker at a URL until the test ends.
func newProxy(tb testing.TB, broker string) *proxy {
	tb.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{target: u.Host, address: "127.0.0.1:0"}
	p.restore(tb)
	u.Host = p.address
	p.url = u.String()
	tb.Cleanup(func() {
		p.cut()
		p.wg.Wait()
	})
	return p
}

// restore lets connections through.
func (p *proxy) restore(tb testing.TB) {
	tb.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.wg.Go(func() { p.serve(l) })
}

// cut ends all connections without a word and refuses others.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		if p.listener != l { // cut meanwhile
			_, _ = near.Close(), far.Close()
		}
		p.mu.Unlock()
		for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
			p.wg.Go(func() {
				_, _ = io.Copy(ends[0], ends[1])
				_, _ = near.Close(), far.Close()
			})
		}
	}
}

// nothing is a cluster without tasks and workers.
type nothing struct{}

func (nothing) View(f func(c state.View)) { f(state.New(state.Options{})) }
func (nothing) Task(context.Context, string) (state.Task, error) {
	return state.Task{}, history.ErrNotFound
}

func (nothing) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	return history.TaskPage{}, nil
}

func (nothing) Count(context.Context, query.Query) (history.Count, error) {
	return history.Count{Exact: true}, nil
}

// dial returns the broker at a URL.
func dial(broker string) (broker.Broker, error) {
	if strings.HasPrefix(broker, "redis") {
		return redis.New(redis.Options{URL: broker})
	}
	return rabbitmq.New(rabbitmq.Options{URL: broker})
}

// newService returns a service that sends the commands of a store to a broker.
func newService(s history.Outbox, b broker.Broker) (*command.Service, error) {
	client, err := remote.New(remote.Options{Broker: b})
	if err != nil {
		return nil, err
	}
	return command.New(command.Options{Client: client, Outbox: s, Tasks: nothing{}})
}
