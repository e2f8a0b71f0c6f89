package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		var child mortal
		err := json.Unmarshal([]byte(text), &child)
		if err == nil {
			err = child.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(testenv.Trials(200))); err != nil { // its own default is 100
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// attempt is one call of Send.
type attempt struct {
	Summary string
	At      time.Duration // since the scene began
}

// scene is a relay with a store in memory and a broker made of a function.
type scene struct {
	*testing.T
	store history.Outbox
	relay *relay.Relay
	begun time.Time
	stop  func() // ends Run and waits for it

	mu       sync.Mutex
	attempts []attempt
	broker   func(ctx context.Context, c history.Command, n int) (relay.Sent, error) // n is the number of the attempt at c, from 1
}

// Send implements relay.Sender.
func (s *scene) Send(ctx context.Context, c history.Command) (relay.Sent, error) {
	s.mu.Lock()
	s.attempts = append(s.attempts, attempt{c.Summary, time.Since(s.begun)})
	n := 0
	for _, a := range s.attempts {
		if a.Summary == c.Summary {
			n++
		}
	}
	s.mu.Unlock()
	return s.broker(ctx, c, n)
}

// tried returns the attempts so far.
func (s *scene) tried() []attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}

// order returns what was tried, in order.
func (s *scene) order() []string {
	var names []string
	for _, a := range s.tried() {
		names = append(names, a.Summary)
	}
	return names
}

// willing is a broker that takes everything.
func willing(context.Context, history.Command, int) (relay.Sent, error) { return relay.Sent{}, nil }

// history opens a store in memory until the test ends.
func openHistory(t *testing.T) *sqlite.DB {
	t.Helper()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return d
}

// play runs f in a bubble with a scene whose relay is not running yet.
func play(
	t *testing.T, broker func(ctx context.Context, c history.Command, n int) (relay.Sent, error),
	change func(o *relay.Options), f func(s *scene),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, broker: broker, begun: time.Now()}
		o := relay.Options{Store: openHistory(t), Sender: s}
		if change != nil {
			change(&o)
		}
		s.store = o.Store
		s.relay = newRelay(t, o)
		f(s)
		if s.stop != nil {
			s.stop()
		}
	})
}

func newRelay(t *testing.T, o relay.Options) *relay.Relay {
	t.Helper()
	r, err := relay.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run starts the relay.
func (s *scene) run() {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run returned %v", err)
		}
	})
}

// pass lets time go by, and all that happens in it happen.
func (s *scene) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// command is one of a group that says its name.
func pendingCommand(group, name string) history.Command {
	return history.Command{Kind: "task", Group: group, Summary: name, Target: group, Payload: []byte(`{}`)}
}

// enqueue writes commands as one order and wakes the relay.
func (s *scene) enqueue(commands ...history.Command) []int64 {
	s.Helper()
	written, _, err := s.store.Enqueue(s.Context(), history.CommandRequest{
		Commands: commands, Audit: history.AuditRecord{At: time.Now(), Actor: "ann", Action: "test"},
	})
	if err != nil {
		s.Fatalf("enqueue: %v", err)
	}
	ids := make([]int64, len(written))
	for i, c := range written {
		ids[i] = c.ID
	}
	s.relay.Wake()
	return ids
}

func (s *scene) command(id int64) history.Command {
	s.Helper()
	c, err := s.store.Command(s.Context(), id)
	if err != nil {
		s.Fatalf("command %d: %v", id, err)
	}
	return c
}

// expect fails the test unless a command is in a state.
func (s *scene) expect(id int64, want history.CommandState) {
	s.Helper()
	if got := s.command(id); got.State != want {
		s.Errorf("command %d is %s (%q), want %s", id, got.State, got.LastError, want)
	}
}

// several returns commands of a group, named after it and a number.
func several(group string, n int) []history.Command {
	list := make([]history.Command, n)
	for i := range list {
		list[i] = pendingCommand(group, fmt.Sprintf("%s%d", group, i))
	}
	return list
}

func unavailable() error { return fmt.Errorf("dial: %w", relay.ErrUnavailable) }

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := &scene{}
	d := openHistory(t)
	for name, o := range map[string]relay.Options{
		"no store":  {Sender: s},
		"no sender": {Store: d},
	} {
		if _, err := relay.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCommandsAreSentAtOnceWhenWoken(t *testing.T) {
	t.Parallel()
	play(t, willing, nil, func(s *scene) {
		s.run()
		s.pass(500 * time.Millisecond)
		ids := s.enqueue(pendingCommand("a", "a0"))
		s.pass(0)
		c := s.command(ids[0])
		if c.State != history.CommandDone || !c.SentAt.Equal(time.Now()) || !c.DoneAt.Equal(time.Now()) {
			s.Errorf("command is %s, sent %v, done %v, want it done now", c.State, c.SentAt, c.DoneAt)
		}
		if got := s.relay.Status(); got.Sent != 1 || got.BreakerOpen || got.LastError != "" {
			s.Errorf("status is %+v", got)
		}
	})
}

func TestErrorsAreKeptShort(t *testing.T) {
	t.Parallel()
	long := errors.New(string(make([]byte, 600)) + "\xff")
	play(t, func(context.Context, history.Command, int) (relay.Sent, error) {
		return relay.Sent{}, errors.Join(long, relay.ErrPermanent)
	}, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"))
		s.pass(0)
		if got := len(s.command(ids[0]).LastError); got > 510 {
			s.Errorf("error of %d bytes", got)
		}
	})
}
