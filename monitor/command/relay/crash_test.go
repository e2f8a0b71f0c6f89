package relay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

const (
	// childEnv makes the program of the tests a mortal.
	childEnv = "UMBEL_TEST_MORTAL"
	// crowd is how many tasks a mortal may leave to the next.
	crowd = 20
)

// mortal is a process that publishes tasks through an outbox until it is killed.
type mortal struct {
	Dir, Broker, Queue string
	// Step is before which it kills itself, 0 for never.
	Step int64
	// Last has it publish nothing, and end when all has been sent.
	Last bool
}

// run lives.
func (m mortal) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := sqlite.Open(ctx, sqlite.Options{Dir: m.Dir})
	if err != nil {
		return err
	}
	b, err := dial(m.Broker)
	if err != nil {
		return err
	}
	s := &steps{}
	s.left.Store(m.Step)
	p, err := newService(stepStore{d, s}, stepBroker{b, s})
	if err != nil {
		return err
	}
	// What it begins with is tried before there is a connection, and life is too short to wait for two seconds then.
	p.Relay, err = relay.New(relay.Options{Store: stepStore{d, s}, Sender: p, Cooldown: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		stats, err := d.OutboxStats(ctx)
		if err != nil {
			return err
		}
		open := stats.States[history.CommandPending] + stats.States[history.CommandInFlight]
		if m.Last && open == 0 {
			cancel()
			return <-ended
		}
		if !m.Last && open < crowd {
			receipt, err := p.Publish(ctx, command.Caller{Actor: "test"}, command.TaskRequest{
				Name: "once.once", Args: json.RawMessage(`["` + m.Queue + `"]`), Queue: m.Queue, Force: true,
			})
			if err != nil {
				return err
			}
			if _, err := fmt.Println(receipt.Commands[0].TaskID); err != nil {
				return err
			}
			continue
		}
		<-tick.C
	}
}

// steps kills the process when it has done so many.
type steps struct{ left atomic.Int64 }

func (s *steps) step() {
	if s.left.Add(-1) == 0 {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = p.Kill()
		}
		select {} // for as long as that takes
	}
}

// stepStore and stepBroker have a step before and after everything that a relay does.
type (
	stepStore struct {
		history.Outbox
		*steps
	}
	stepBroker struct {
		broker.Broker
		*steps
	}
	stepLine struct {
		broker.ControlConn
		*steps
	}
)

func (s stepStore) Enqueue(ctx context.Context, o history.CommandRequest) ([]history.Command, bool, error) {
	s.step()
	defer s.step()
	return s.Outbox.Enqueue(ctx, o)
}

func (s stepStore) Claim(ctx context.Context, relay string, now time.Time, limit, each int) (history.Claimed, error) {
	s.step()
	defer s.step()
	return s.Outbox.Claim(ctx, relay, now, limit, each)
}

func (s stepStore) RecordOutcomes(ctx context.Context, relay string, now time.Time, outcomes []history.Outcome) error {
	s.step()
	defer s.step()
	return s.Outbox.RecordOutcomes(ctx, relay, now, outcomes)
}

func (s stepStore) Reclaim(ctx context.Context, relay string, now, before time.Time, held []int64) (history.Reclaimed, error) {
	s.step()
	defer s.step()
	return s.Outbox.Reclaim(ctx, relay, now, before, held)
}

func (s stepBroker) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	l, err := s.Broker.OpenControl(ctx)
	return stepLine{l, s.steps}, err
}

func (s stepLine) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	s.step()
	defer s.step()
	return s.ControlConn.Publish(ctx, queue, m)
}

// live lets a mortal live: until it is killed after a while, if it does not kill itself. It returns the ids of the tasks
// that were committed.
func (m mortal) live(t *testing.T, life time.Duration) (committed []string) {
	t.Helper()
	env, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	defer over.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		committed = append(committed, lines.Text())
	}
	err = cmd.Wait()
	if m.Last && err != nil || !m.Last && (err == nil || cmd.ProcessState.Exited()) {
		t.Fatalf("child: %v\n%s", err, complaint.String())
	}
	return committed
}

// TestEndToEndKilledBetweenAnyTwoSteps kills a process that publishes tasks again and again: before and after every
// step of its relay, and at any moment. A relay that settles before it sends fails it.
func TestEndToEndKilledBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	counts := newServer(t)
	for kind, test := range map[string]struct {
		broker func(t *testing.T) string
		kills  int
	}{
		"redis": {func(*testing.T) string { return counts.url }, testenv.Trials(300)},
		"amqp":  {func(t *testing.T) string { return testenv.VirtualHost(t) }, testenv.Trials(150)}, // RabbitMQ takes its time to confirm
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := mortal{Dir: t.TempDir(), Broker: test.broker(t), Queue: kind}
			work(t, m.Broker, counts.url, m.Queue)
			var committed []string
			for n := range test.kills {
				m.Step = 0
				life := time.Minute
				if n%2 == 0 {
					m.Step = 1 + rand.Int64N(60)
				} else {
					life = time.Duration(rand.Int64N(int64(300 * time.Millisecond)))
				}
				committed = append(committed, m.live(t, life)...)
			}
			m.Step, m.Last = 0, true
			m.live(t, timeout)
			delivered(t, m, counts, committed)
			t.Logf("killed %d times", test.kills)
		})
	}
}

// delivered fails the test unless every committed task was run, and did its work once.
func delivered(t *testing.T, m mortal, counts *server, committed []string) {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: m.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	}()
	tasks := map[string]bool{}
	for f := (history.CommandFilter{Limit: 500}); ; {
		list, next, err := d.Commands(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			tasks[c.TaskID] = true
			if c.State != history.CommandDone || c.Attempts > 0 {
				t.Errorf("command %d is %s after %d failed attempts: %s", c.ID, c.State, c.Attempts, c.LastError)
			}
		}
		if f.Before = next; next == 0 {
			break
		}
	}
	for _, id := range committed {
		if !tasks[id] {
			t.Errorf("task %s was committed and has no command", id)
		}
	}
	var runs, effects map[string]string
	eventually(t, func() error {
		var err, errEffects error
		runs, err = counts.client.HGetAll(t.Context(), "runs:"+m.Queue).Result()
		effects, errEffects = counts.client.HGetAll(t.Context(), "effects:"+m.Queue).Result()
		if err = errors.Join(err, errEffects); err == nil && (len(runs) < len(tasks) || len(effects) < len(tasks)) {
			err = fmt.Errorf("of %d tasks %d have run, and %d did their work", len(tasks), len(runs), len(effects))
		}
		return err
	})
	again := 0
	for id := range tasks {
		if runs[id] == "" || effects[id] != "1" {
			t.Errorf("task %s ran %q times and did its work %q times, want it done once", id, runs[id], effects[id])
		}
		if runs[id] != "1" {
			again++
		}
	}
	if stray := slices.DeleteFunc(slices.Collect(maps.Keys(runs)), func(id string) bool { return tasks[id] }); len(stray) > 0 {
		t.Errorf("%d tasks ran that nobody has asked for: %v", len(stray), stray)
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("audit record %d is not as it was: %v", bad, err)
	}
	t.Logf("%d tasks, %d of them known to be committed, %d run more than once", len(tasks), len(committed), again)
}
