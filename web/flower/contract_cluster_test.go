package flower_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
)

// shop is a Celery app with a worker, which Flower and Umbel watch.
type shop struct {
	broker, backend, management string
	python                      string
	env                         []string
	worker                      string // its node name

	mu    sync.Mutex
	pairs map[string]pair
}

// pair is a Flower and an Umbel that run alike.
type pair struct{ flower, umbel string } // URLs without a slash at the end

// newShop starts a worker on a broker.
func newShop(t *testing.T, broker, management string) *shop {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{broker: broker, backend: broker, management: management, python: testenv.Flower(t), worker: "w1@shop", pairs: make(map[string]pair)}
	if !strings.HasPrefix(broker, "redis") {
		s.backend = ownRedis(t)
	}
	s.env = append(os.Environ(), "CELERY_BROKER_URL="+s.broker, "CELERY_RESULT_BACKEND="+s.backend, "C_FORCE_ROOT=1", "PYTHONPATH="+dir,
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=ignore", "TZ=UTC")
	s.run(t, nil, "-m", "celery", "-A", "shop", "worker", "-l", "INFO", "-n", s.worker, "-c", "2", "-E", "--without-gossip", "--without-mingle")
	return s
}

// run starts a program of Python that ends with the test.
func (s *shop) run(t *testing.T, env []string, args ...string) {
	t.Helper()
	start(t, append(s.env, env...), s.python, args...)
}

// start starts a program that is killed when the test ends. If the test fails, its output is logged.
func start(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	var output bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			text := output.String()
			t.Logf("%s %s:\n%s", name, strings.Join(args, " "), text[max(0, len(text)-4000):])
		}
	})
}

// publish publishes the tasks of publish.py.
func (s *shop) publish(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.python, filepath.Join("testdata", "publish.py"))
	cmd.Env = s.env
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("publish tasks: %v\n%s", err, output)
	}
}

// mode is how both run.
type mode struct {
	env      []string // of Flower
	readOnly bool
	users    []string // of Umbel, as user:password
	settings flower.Settings
}

// modes are the ways of running both. The first is the one of rows that name none.
var modes = map[string]mode{
	"":         {env: []string{"FLOWER_UNAUTHENTICATED_API=true"}, settings: flower.Settings{Unauthenticated: true, Location: time.UTC, InspectTimeout: 20 * time.Second}},
	"locked":   {},
	"basic":    {env: []string{"FLOWER_BASIC_AUTH=" + user}, users: []string{user}},
	"readonly": {env: []string{"FLOWER_UNAUTHENTICATED_API=true", "FLOWER_READ_ONLY=true"}, readOnly: true, settings: flower.Settings{Unauthenticated: true}},
}

// user may do everything where a mode has users.
const user = "ann:s3cret:word"

// signedIn are the headers of a user with a password, as user:password.
func signedIn(user string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user))}
}

// pair starts Flower and Umbel, if they do not run yet, and waits until both know the worker.
func (s *shop) pair(t *testing.T, name string) pair {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.pairs[name]; ok {
		return p
	}
	m := modes[name]
	port := freePort(t)
	if s.management != "" {
		m.env = append([]string{"FLOWER_BROKER_API=" + s.management + "/api/"}, m.env...)
	}
	s.run(t, m.env, "-m", "celery", "-A", "shop", "flower", "--address=127.0.0.1", "--port="+port, "--conf="+filepath.Join("testdata", "flowerconfig.py"))
	p := pair{flower: "http://127.0.0.1:" + port, umbel: s.watch(t, m)}
	for _, url := range []string{p.flower, p.umbel} {
		eventually(t, url+" has a heartbeat that the worker sent of its own accord", func() error {
			answer, err := ask(t.Context(), url, call{path: "/workers?json=1", header: signedIn(user)})
			if err == nil && !strings.Contains(answer.body, `"loadavg": [`) { // one that Umbel asks for has no load
				err = fmt.Errorf("%d %s", answer.status, answer.body)
			}
			return err
		})
	}
	s.pairs[name] = p
	return p
}

// watch starts an Umbel in this process.
func (s *shop) watch(t *testing.T, m mode) string {
	t.Helper()
	var signIn *auth.Options
	if len(m.users) > 0 {
		signIn = &auth.Options{Users: m.users}
	}
	d, err := dashboard.New(dashboard.Options{
		BrokerURL: s.broker, ResultBackend: s.backend, ManagementURL: s.management, ReadOnly: m.readOnly, Flower: m.settings,
		SignIn: signIn, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	server := httptest.NewServer(d)
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := errors.Join(<-ended, d.Close()); err != nil {
			t.Errorf("Umbel ended: %v", err)
		}
	})
	return server.URL
}

// ownRedis starts a Redis of the test's own.
func ownRedis(t *testing.T) string {
	t.Helper()
	port := freePort(t)
	start(t, nil, testenv.RedisServer(t), "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	eventually(t, "redis-server accepts connections", func() error {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			err = c.Close()
		}
		return err
	})
	return "redis://127.0.0.1:" + port + "/0"
}

// ownVhost makes a vhost of the test's own in RabbitMQ.
func ownVhost(t *testing.T) (broker, management string) {
	t.Helper()
	management = testenv.Management(t)
	u, err := url.Parse(testenv.AMQP(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/flower-" + rand.Text()
	manage := func(method, path, body string) {
		answer, err := ask(context.Background(), management, call{method: method, path: "/api" + path, json: body})
		if err != nil || answer.status >= 300 {
			t.Fatalf("%s %s: %v %s", method, path, err, answer.line())
		}
	}
	manage("PUT", "/vhosts"+u.Path, "{}")
	t.Cleanup(func() { manage("DELETE", "/vhosts"+u.Path, "") })
	manage("PUT", "/permissions"+u.Path+"/"+u.User.Username(), `{"configure": ".*", "write": ".*", "read": ".*"}`)
	return u.String(), management
}

// freePort returns a port of loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// eventually waits until ok returns nil, at most for two minutes.
func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(2 * time.Minute)
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask makes a request and follows no redirect.
func ask(ctx context.Context, url string, c call) (answer, error) {
	method, body := c.method, c.json
	if method == "" {
		method = http.MethodGet
	}
	if c.form != "" {
		body = c.form
	}
	r, err := http.NewRequestWithContext(ctx, method, url+c.path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	switch {
	case c.form != "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case c.json != "":
		r.Header.Set("Content-Type", "application/json")
	}
	if password, ok := r.URL.User.Password(); ok {
		r.SetBasicAuth(r.URL.User.Username(), password)
	}
	for name, value := range c.header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(content)}, err
}
