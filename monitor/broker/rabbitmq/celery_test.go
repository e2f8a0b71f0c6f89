package rabbitmq_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
)

// workerScript is a Celery worker of one task, which notes its argument in a file. Its names are in the environment.
const workerScript = `
import os
from celery import Celery
name = os.environ["NAME"]
app = Celery(broker=os.environ["BROKER"])
app.conf.update(control_exchange=name, event_exchange=name + ".ev", task_default_queue=name + ".q",
                broker_connection_retry_on_startup=True, worker_send_task_events=False)

@app.task(name="note")
def note(text):
    with open(os.environ["FILE"], "a") as f:
        f.write(text + "\n")

app.worker_main(["worker", "-P", "solo", "-n", "w1@test", "--without-gossip", "--without-mingle", "-l", "warning"])
`

// work starts a worker that ends with the test, and returns the file that its task writes to.
func work(t *testing.T, name string) (file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "notes")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), testenv.Python(t), "-c", workerScript)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NAME="+name, "BROKER="+testenv.AMQP(t), "FILE="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start worker: %v", err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("worker:\n%s", out.String())
		}
	})
	return file
}

// TestEndToEndCeleryOnAControlConn has a real worker answer a ping and run a task.
func TestEndToEndCeleryOnAControlConn(t *testing.T) {
	t.Parallel()
	o := options(t)
	name, queue := o.ControlExchange, o.ControlExchange+".q"
	c := openControl(t, controlBroker(t, o))
	ch := channel(t)
	file := work(t, name)
	t.Cleanup(func() {
		for _, exchange := range []string{name + ".ev", queue} {
			if err := ch.ExchangeDelete(exchange, false, false); err != nil {
				t.Errorf("delete exchange: %v", err)
			}
		}
	})
	deleteLater(t, ch, queue)

	ping, err := json.Marshal(map[string]any{
		"method": "ping", "arguments": map[string]any{}, "destination": nil, "pattern": nil, "matcher": nil,
		"ticket": "t1", "reply_to": c.ReplyTo(),
	})
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	request := broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", Body: ping,
		Headers: map[string]any{"clock": int64(1), "expires": int64(0)},
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var answer broker.Publishing
	for answer.Body == nil {
		if _, err := c.Request(ctx, request); err != nil {
			t.Fatalf("request: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		answer, err = c.ReceiveReply(short)
		cancel()
		if err != nil && ctx.Err() != nil {
			t.Fatalf("no answer to a ping: %v", err)
		}
	}
	if got, want := string(answer.Body), `{"w1@test": {"ok": "pong"}}`; got != want {
		t.Errorf("answer = %s, want %s", got, want)
	}
	if got, want := answer.Headers["ticket"], "t1"; got != want {
		t.Errorf("ticket = %v, want %v", got, want)
	}

	s, err := c.QueueStats(ctx, []string{queue})
	if err != nil || len(s.Queues) != 1 || s.Queues[0].Consumers == nil || *s.Queues[0].Consumers != 1 {
		t.Errorf("stats = %+v, error %v, want one consumer", s.Queues, err)
	}
	err = c.Publish(ctx, queue, broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: "id-1", Persistent: true,
		Headers: map[string]any{"task": "note", "id": "id-1"}, Body: []byte(`[["it ran"],{},{}]`),
	})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	until(t, "the task does not run", func() bool {
		b, _ := os.ReadFile(file)
		return string(b) == "it ran\n"
	})
}
