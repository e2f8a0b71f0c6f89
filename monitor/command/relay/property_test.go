package relay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
)

// lottery is a broker whose answers are drawn.
type lottery struct {
	mu        sync.Mutex
	outcomes  []int          // of sends, in turn
	delivered map[string]int // by summary
	first     []string       // what was delivered for the first time, in order
}

func (l *lottery) Send(_ context.Context, c history.Command) (relay.Sent, error) {
	<-time.After(10 * time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	outcome := 0
	if len(l.outcomes) > 0 {
		outcome, l.outcomes = l.outcomes[0], l.outcomes[1:]
	}
	switch outcome {
	case 1:
		return relay.Sent{}, errors.New("drawn to fail")
	case 2:
		return relay.Sent{}, unavailable()
	case 3: // the broker took it, and the confirmation was lost
		l.took(c)
		return relay.Sent{}, unavailable()
	}
	l.took(c)
	return relay.Sent{}, nil
}

func (l *lottery) took(c history.Command) {
	if l.delivered[c.Summary]++; l.delivered[c.Summary] == 1 {
		l.first = append(l.first, c.Summary)
	}
}

// life is how a relay lives.
type life struct {
	commands int           // enqueued before it begins
	length   time.Duration // 0 is until all are sent
}

// TestNothingIsLostWhateverFails crashes relays, sends and the store at random moments.
func TestNothingIsLostWhateverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l := &lottery{delivered: map[string]int{}}
		l.outcomes = rapid.SliceOfN(rapid.IntRange(0, 3), 0, 60).Draw(rt, "outcomes")
		lives := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) life {
			return life{
				commands: rapid.IntRange(1, 8).Draw(rt, "commands"),
				length:   time.Duration(rapid.IntRange(1, 3000).Draw(rt, "milliseconds")) * time.Millisecond,
			}
		}), 0, 4).Draw(rt, "lives")
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = l.play(t, append(lives, life{commands: 1}))
		})
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// play lets relays live one after the other on one store, and says what is wrong at the end.
func (l *lottery) play(t *testing.T, lives []life) error {
	t.Helper()
	d := openHistory(t)
	var names []string
	for _, x := range lives {
		o := history.CommandRequest{Audit: history.AuditRecord{At: time.Now()}}
		for range x.commands {
			name := fmt.Sprintf("%c%03d", 'a'+len(names)%3, len(names))
			names = append(names, name)
			o.Commands = append(o.Commands, pendingCommand(name[:1], name))
		}
		if _, _, err := d.Enqueue(t.Context(), o); err != nil {
			return err
		}
		live(t, d, l, x)
	}
	last := map[byte]string{} // by group
	for _, name := range l.first {
		if last[name[0]] > name {
			return fmt.Errorf("%s was delivered before %s", last[name[0]], name)
		}
		last[name[0]] = name
	}
	for _, name := range names {
		if l.delivered[name] == 0 {
			return fmt.Errorf("%s was lost", name)
		}
	}
	stats, err := d.OutboxStats(t.Context())
	if err == nil && stats.States[history.CommandDone] != len(names) {
		err = fmt.Errorf("states are %v of %d commands", stats.States, len(names))
	}
	return err
}

// live runs a relay for a while, and crashes it: it records nothing more. The last one ends as it should.
func live(t *testing.T, d history.Outbox, l *lottery, x life) {
	t.Helper()
	b := &brittle{Outbox: d}
	ctx, cancel := context.WithCancel(t.Context())
	r := newRelay(t, relay.Options{Store: b, Sender: l, MaxRetries: 1000, MaxBackoff: 10 * time.Second})
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	if x.length > 0 {
		<-time.After(x.length)
		b.broken.Store(true)
	} else {
		sent(t, d)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
	if f, ok := d.(interface {
		ForgetRelays(ctx context.Context) error
	}); ok { // as when another process opens the store
		if err := f.ForgetRelays(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// sent waits until all has been sent, for half an hour at most.
func sent(t *testing.T, d history.Outbox) {
	t.Helper()
	for range 360 {
		<-time.After(5 * time.Second)
		stats, err := d.OutboxStats(t.Context())
		if err != nil {
			t.Error(err)
		}
		if stats.States[history.CommandPending]+stats.States[history.CommandInFlight] == 0 {
			return
		}
	}
}
