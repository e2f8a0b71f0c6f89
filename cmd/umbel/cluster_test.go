package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// cluster is a Celery app with its broker and a client.
type cluster struct {
	broker string
	dir    string // of the app
	env    []string
	python string

	client  *process
	mu      sync.Mutex // one order at a time
	calls   io.Writer
	results *bufio.Scanner
}

// newCluster starts a client of a broker and no worker.
func newCluster(tb testing.TB, broker string) *cluster {
	tb.Helper()
	return newClusterWith(tb, broker)
}

// newClusterWith is newCluster with variables of the environment beside its own.
func newClusterWith(tb testing.TB, broker string, env ...string) *cluster {
	tb.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	source, err := filepath.Abs("../../python") // of the package umbel
	if err != nil {
		tb.Fatal(err)
	}
	c := &cluster{broker: broker, dir: dir, python: testenv.Python(tb)}
	c.env = []string{
		"CELERY_BROKER_URL=" + c.broker, "CELERY_RESULT_BACKEND=" + testenv.Redis(tb), "C_FORCE_ROOT=1",
		"PYTHONPATH=" + dir + string(filepath.ListSeparator) + source, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PYTHONWARNINGS=ignore",
	}
	c.env = append(c.env, env...)
	cmd := command(c.env, c.python, filepath.Join(dir, "client.py"))
	if c.calls, err = cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	results, toTest := io.Pipe()
	cmd.Stdout, c.results = toTest, bufio.NewScanner(results)
	c.client = spawn(tb, cmd)
	go func() {
		<-c.client.exited
		_ = toTest.Close()
	}()
	return c
}

// clientCall is a call that the Celery client makes.
type clientCall struct {
	Call    string         `json:"call"`
	Args    []any          `json:"args,omitempty"`
	Kwargs  map[string]any `json:"kwargs,omitempty"`
	Options map[string]any `json:"options,omitempty"`
}

// do has the client make a call, and returns the IDs of the tasks that it published.
func (c *cluster) do(tb testing.TB, o clientCall) []string {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.NewEncoder(c.calls).Encode(o); err != nil {
		tb.Fatalf("call %s: %v", o.Call, err)
	}
	if !c.results.Scan() {
		tb.Fatalf("client ended at %s: %v\n%s", o.Call, c.results.Err(), c.client.lines.tail(40))
	}
	var ids []string
	if err := json.Unmarshal(c.results.Bytes(), &ids); err != nil {
		tb.Fatalf("decode result of %s: %v", o.Call, err)
	}
	return ids
}

// call publishes a task and returns its id.
func (c *cluster) call(tb testing.TB, name string, args ...any) string {
	tb.Helper()
	return c.do(tb, clientCall{Call: name, Args: args})[0]
}

// work starts a worker that takes tasks from a queue, and waits until it does.
func (c *cluster) work(tb testing.TB, node, queue string, flags ...string) *process {
	tb.Helper()
	p := c.start(tb, node, queue, flags...)
	p.await(tb, node+" ready.")
	return p
}

// start starts a worker and does not wait.
func (c *cluster) start(tb testing.TB, node, queue string, flags ...string) *process {
	tb.Helper()
	args := append([]string{"-m", "celery", "-A", "tasks", "worker", "-l", "INFO", "-n", node, "-Q", queue}, flags...)
	cmd := command(c.env, c.python, args...)
	cmd.Dir = c.dir
	return spawn(tb, cmd)
}

// gate is a file that tasks wait for.
type gate string

func newGate(tb testing.TB) gate { tb.Helper(); return gate(filepath.Join(tb.TempDir(), "open")) }

func (g gate) open(tb testing.TB) {
	tb.Helper()
	if err := os.WriteFile(string(g), nil, 0o600); err != nil {
		tb.Fatalf("open gate: %v", err)
	}
}
