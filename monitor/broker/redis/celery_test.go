package redis_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// app is a Celery app with every transport option that the wire does not tell.
const app = `
import os
from celery import Celery
app = Celery("app", broker=os.environ["BROKER"])
app.conf.update(
    broker_connection_retry=False, broker_connection_retry_on_startup=True, worker_send_task_events=True,
    task_send_sent_event=True, event_exchange="ev", control_exchange="ctl", broker_transport_options={
        "global_keyprefix": "pfx_", "fanout_prefix": "/x{db}.", "fanout_patterns": True, "sep": ":",
        "priority_steps": [0, 5], "visibility_timeout": 7200, "unacked_key": "un", "unacked_index_key": "un_index"})

@app.task
def add(x, y):
    return x + y
`

// TestCelery watches a real worker, asks it, and gives it tasks.
func TestCelery(t *testing.T) {
	t.Parallel()
	python, port := testenv.Python(t), freePort(t)
	runServer(t, "tcp", "127.0.0.1:"+port, "bind 127.0.0.1\nport "+port+"\nrequirepass p@ss")
	url := "redis://:p%40ss@127.0.0.1:" + port + "/3"
	b := newBroker(t, redis.Options{
		URL: url, KeyPrefix: "pfx_", FanoutPrefix: "/x{db}.", Separator: ":", PrioritySteps: []int{0, 5},
		UnackedKey: "un", UnackedIndexKey: "un_index", Exchange: "ev", ControlExchange: "ctl", VisibilityTimeout: 2 * time.Hour,
	})
	s, l := connect(t, b), open(t, b)
	startWorker(t, python, url)
	hear(t, s, `"worker-heartbeat"`) // then it listens for commands

	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ask(ctx, t, l, "ping", `{"w1@test": {"ok": "pong"}}`)
	for i, priority := range []uint8{0, 7} {
		publishTask(ctx, t, l, fmt.Sprintf("task-%d", i), priority, time.Time{})
		if got := hear(t, s, `"task-succeeded"`); !strings.Contains(got, fmt.Sprintf(`"uuid": "task-%d"`, i)) || !strings.Contains(got, `"result": "5"`) {
			t.Errorf("events of task %d are %s", i, got)
		}
	}

	// A worker holds what waits for its time.
	publishTask(ctx, t, l, "later", 0, time.Now().Add(time.Hour))
	hear(t, s, `"task-received"`)
	found, err := l.Find(ctx, []string{"celery"}, "later")
	if err != nil || found == nil || string(found.Body) != "[[2, 3], {}, {}]" {
		t.Errorf("find what the worker holds = %v, error %v, want its message", found, err)
	}
	stats, err := l.QueueStats(ctx, nil)
	if err != nil || len(stats.Queues) != 1 {
		t.Fatalf("stats = %+v, error %v, want the queue celery alone", stats.Queues, err)
	}
	q := stats.Queues[0]
	if q.Name != "celery" || *q.Ready != 0 || q.Unacked == nil || *q.Unacked != 1 || time.Since(*q.OldestUnacked) > time.Minute {
		t.Errorf("queue = %+v, want celery with one delivery held", q)
	}
}

// startWorker runs a worker until the test ends.
func startWorker(t *testing.T, python, url string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.py"), []byte(app), 0o600); err != nil {
		t.Fatalf("write app: %v", err)
	}
	cmd := exec.Command(python, "-m", "celery", "-A", "app", "worker", "-l", "INFO", "-n", "w1@test", "-P", "solo")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BROKER="+url, "C_FORCE_ROOT=1", "PYTHONDONTWRITEBYTECODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start worker: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the worker wrote:\n%s", log.String())
		}
	})
}

// hear receives until an event holds a text, and returns the message.
func hear(t *testing.T, s broker.EventStream, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		batch, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive until %s: %v", text, err)
		}
		for _, m := range batch {
			if strings.Contains(string(m.Body), text) {
				if m.ContentType != "application/json" || m.RoutingKey == "" {
					t.Errorf("event is of type %q with the key %q", m.ContentType, m.RoutingKey)
				}
				return string(m.Body)
			}
		}
	}
}

// ask sends a command and expects one answer.
func ask(ctx context.Context, t *testing.T, l broker.ControlConn, method, want string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"method": method, "arguments": map[string]any{}, "destination": nil, "ticket": "t1", "reply_to": l.ReplyTo(),
	})
	if err != nil {
		t.Fatal(err)
	}
	m := broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", Body: body,
		Headers: map[string]any{"clock": int64(0), "expires": int64(0)},
	}
	if n, err := l.Request(ctx, m); err != nil || n != 1 {
		t.Fatalf("request reached %d workers, error %v, want 1", n, err)
	}
	reply, err := l.ReceiveReply(ctx)
	if err != nil || string(reply.Body) != want || reply.Headers["ticket"] != "t1" {
		t.Errorf("reply = %s, headers %v, error %v, want %s", reply.Body, reply.Headers, err, want)
	}
}

// publishTask sends a task of protocol 2.
func publishTask(ctx context.Context, t *testing.T, l broker.ControlConn, id string, priority uint8, eta time.Time) {
	t.Helper()
	headers := map[string]any{"lang": "py", "task": "app.add", "id": id, "root_id": id, "retries": int64(0), "eta": nil}
	if !eta.IsZero() {
		headers["eta"] = eta.UTC().Format("2006-01-02T15:04:05.000000-07:00")
	}
	err := l.Publish(ctx, "celery", broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: id, Priority: priority, Persistent: true,
		Headers: headers, Body: []byte("[[2, 3], {}, {}]"),
	})
	if err != nil {
		t.Fatalf("publish task %s: %v", id, err)
	}
}
