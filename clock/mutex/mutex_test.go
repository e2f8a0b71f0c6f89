package mutex_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/clock/mutex"
)

func process(t *testing.T, self string, peers ...string) *mutex.Process {
	t.Helper()
	p, err := mutex.New(self, peers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// deliver has p receive m and returns what it does.
func deliver(t *testing.T, p *mutex.Process, m mutex.Message) mutex.Output {
	t.Helper()
	out, err := p.Receive(m)
	if err != nil {
		t.Fatalf("%s receives %+v: %v", p.Name(), m, err)
	}
	return out
}

func TestTiesAreOrderedByProcess(t *testing.T) {
	t.Parallel()
	a, b := process(t, "a", "b"), process(t, "b", "a")
	fromA, _ := a.Request()
	fromB, _ := b.Request()
	if fromA.Send[0].Clock != 1 || fromB.Send[0].Clock != 1 {
		t.Fatalf("requests at %d and %d, want a tie", fromA.Send[0].Clock, fromB.Send[0].Clock)
	}
	ackOfA := deliver(t, a, fromB.Send[0])
	ackOfB := deliver(t, b, fromA.Send[0])
	if !ackOfA.Granted || ackOfB.Granted || deliver(t, b, ackOfA.Send[0]).Granted {
		t.Fatal("the tie was not decided for a")
	}
	deliver(t, a, ackOfB.Send[0])
	release, err := a.Release()
	if err != nil || !deliver(t, b, release.Send[0]).Granted || !b.Held() || a.Held() {
		t.Errorf("after the release by a (%v), b has the lock: %v", err, b.Held())
	}
}

func TestAloneTakesTheLockAtOnce(t *testing.T) {
	t.Parallel()
	p := process(t, "a")
	if out, err := p.Request(); err != nil || !out.Granted || len(out.Send) != 0 {
		t.Errorf("request = %+v, %v, want granted without messages", out, err)
	}
	if _, err := p.Request(); !errors.Is(err, mutex.ErrRequested) {
		t.Errorf("second request: %v, want %v", err, mutex.ErrRequested)
	}
	if _, err := p.Release(); err != nil || p.Held() {
		t.Errorf("release: %v, held %v", err, p.Held())
	}
	if _, err := p.Release(); !errors.Is(err, mutex.ErrNotRequested) {
		t.Errorf("second release: %v, want %v", err, mutex.ErrNotRequested)
	}
}

func TestMissingAndReorderedMessagesBlock(t *testing.T) {
	t.Parallel()
	for name, sequence := range map[string]uint64{"gap": 2, "far ahead": 1 << 60} {
		p := process(t, "a", "b", "c")
		if _, err := p.Request(); err != nil {
			t.Fatal(err)
		}
		m := mutex.Message{Kind: mutex.Acknowledge, From: "b", To: "a", Sequence: sequence, Clock: 5}
		if _, err := p.Receive(m); !errors.Is(err, mutex.ErrOrder) {
			t.Errorf("%s: %v, want %v", name, err, mutex.ErrOrder)
		}
		m.Sequence = 1 // the one that was overtaken
		if _, err := p.Receive(m); !errors.Is(err, mutex.ErrOrder) {
			t.Errorf("%s, then the first: %v, want %v", name, err, mutex.ErrOrder)
		}
		deliver(t, p, mutex.Message{Kind: mutex.Acknowledge, From: "c", To: "a", Sequence: 1, Clock: 5})
		if got := p.Waiting(); p.Held() || !slices.Equal(got, []string{"b"}) {
			t.Errorf("%s: waiting for %v, held %v, want to wait for b", name, got, p.Held())
		}
	}
}

func TestRepeatedMessagesAreDropped(t *testing.T) {
	t.Parallel()
	p := process(t, "a", "b")
	request := mutex.Message{Kind: mutex.Request, From: "b", To: "a", Sequence: 1, Clock: 3}
	deliver(t, p, request)
	if out := deliver(t, p, request); len(out.Send) != 0 || len(p.Queue()) != 1 {
		t.Errorf("a repetition leads to %+v and the queue %v", out, p.Queue())
	}
}

func TestMessagesAgainstTheAlgorithm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message mutex.Message
		want    error
	}{
		"from a stranger":      {mutex.Message{Kind: mutex.Request, From: "x", To: "a", Sequence: 1, Clock: 1}, mutex.ErrStranger},
		"to another":           {mutex.Message{Kind: mutex.Request, From: "b", To: "c", Sequence: 1, Clock: 1}, mutex.ErrStranger},
		"of itself":            {mutex.Message{Kind: mutex.Request, From: "a", To: "a", Sequence: 1, Clock: 1}, mutex.ErrStranger},
		"no clock":             {mutex.Message{Kind: mutex.Request, From: "b", To: "a", Sequence: 1}, mutex.ErrProtocol},
		"a clock out of range": {mutex.Message{Kind: mutex.Request, From: "b", To: "a", Sequence: 1, Clock: clock.Max + 1}, mutex.ErrProtocol},
		"an unknown kind":      {mutex.Message{Kind: 9, From: "b", To: "a", Sequence: 1, Clock: 1}, mutex.ErrProtocol},
	} {
		p := process(t, "a", "b", "c")
		if out, err := p.Receive(c.message); !errors.Is(err, c.want) || len(out.Send) != 0 {
			t.Errorf("%s: %+v, %v, want %v", name, out, err, c.want)
		}
	}
	p := process(t, "a", "b")
	deliver(t, p, mutex.Message{Kind: mutex.Request, From: "b", To: "a", Sequence: 1, Clock: 1})
	if _, err := p.Receive(mutex.Message{Kind: mutex.Request, From: "b", To: "a", Sequence: 2, Clock: 2}); !errors.Is(err, mutex.ErrProtocol) {
		t.Errorf("a second request without a release: %v, want %v", err, mutex.ErrProtocol)
	}
}

func TestSuspicionOnlyBlocks(t *testing.T) {
	t.Parallel()
	p := process(t, "a", "b")
	if _, err := p.Request(); err != nil {
		t.Fatal(err)
	}
	p.Suspect("b")
	if deliver(t, p, mutex.Message{Kind: mutex.Acknowledge, From: "b", To: "a", Sequence: 1, Clock: 4}).Granted || p.Held() {
		t.Error("granted although b is suspected")
	}
	if !p.Trust("b").Granted {
		t.Error("not granted although b is trusted again and was heard from")
	}
	p.Suspect("b")
	if !p.Held() {
		t.Error("a suspicion took the lock away")
	}
}

func TestJoiningLearnsWhoHasTheLock(t *testing.T) {
	t.Parallel()
	a, b := process(t, "a"), process(t, "b")
	if out, _ := a.Request(); !out.Granted {
		t.Fatal("a does not get the lock alone")
	}
	fromA, err := a.Add("b")
	if err != nil || len(fromA.Send) != 1 || fromA.Send[0].Kind != mutex.Request {
		t.Fatalf("a adds b: %+v, %v, want its request", fromA, err)
	}
	fromB, err := b.Add("a")
	if err != nil {
		t.Fatal(err)
	}
	requestOfB, _ := b.Request()
	ack := deliver(t, b, fromA.Send[0])
	for _, m := range slices.Concat(fromB.Send, requestOfB.Send, ack.Send) {
		for _, response := range deliver(t, a, m).Send {
			if deliver(t, b, response).Granted {
				t.Fatal("b has the lock beside a")
			}
		}
	}
	if got := b.Remove("a"); !got.Granted {
		t.Error("b does not get the lock after a is gone")
	}
	if _, err := b.Add("b"); err == nil {
		t.Error("b could add itself")
	}
}

func TestNamesMustDiffer(t *testing.T) {
	t.Parallel()
	for _, peers := range [][]string{{"a"}, {"b", "b"}} {
		if _, err := mutex.New("a", peers, nil); err == nil {
			t.Errorf("a among %v is accepted", peers)
		}
	}
}

// network delivers messages in order, each to the Mutex it is for, in a goroutine of its channel.
type network map[string]chan mutex.Message

func (n network) Send(m mutex.Message) error {
	n[m.From+m.To] <- m
	return nil
}

func TestMutexExcludesGoroutinesOfManyProcesses(t *testing.T) {
	t.Parallel()
	const rounds = 50
	names := []string{"a", "b", "c", "d"}
	wires := make(network)
	locks := make(map[string]*mutex.Mutex)
	for i, name := range names {
		others := slices.Delete(slices.Clone(names), i, i+1)
		locks[name] = mutex.NewMutex(process(t, name, others...), wires)
		for _, other := range others {
			wires[name+other] = make(chan mutex.Message, 1000)
		}
	}
	var delivering, working sync.WaitGroup
	done := make(chan struct{})
	for _, wire := range wires {
		delivering.Go(func() {
			for {
				select {
				case m := <-wire:
					if err := locks[m.To].Deliver(m); err != nil {
						t.Errorf("deliver %+v: %v", m, err)
					}
				case <-done:
					return
				}
			}
		})
	}
	var owned int // the race detector checks that the lock guards it
	for _, name := range names {
		for range 2 {
			working.Go(func() {
				for range rounds {
					if err := locks[name].Lock(t.Context()); err != nil {
						t.Errorf("lock: %v", err)
						return
					}
					owned++
					if err := locks[name].Unlock(); err != nil {
						t.Errorf("unlock: %v", err)
					}
				}
			})
		}
	}
	working.Wait()
	if want := len(names) * 2 * rounds; owned != want {
		t.Errorf("%d claims, want %d", owned, want)
	}
	close(done)
	delivering.Wait()
}

// lost is a network that loses everything.
type lost struct{}

func (lost) Send(mutex.Message) error { return nil }

func TestLockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := mutex.NewMutex(process(t, "a", "b"), lost{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Lock(ctx) }()
	for len(l.Waiting()) == 0 { // until it has requested
		select {
		case err := <-done:
			t.Fatalf("lock returned %v", err)
		default:
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("lock: %v, want %v", err, context.Canceled)
	}
	if err := l.Unlock(); !errors.Is(err, mutex.ErrNotRequested) {
		t.Errorf("unlock: %v, want %v", err, mutex.ErrNotRequested)
	}
}

func TestUnlockLeavesTheRequestOfAnother(t *testing.T) {
	t.Parallel()
	l := mutex.NewMutex(process(t, "a", "b"), lost{})
	done := make(chan error)
	go func() { done <- l.Lock(t.Context()) }()
	for len(l.Waiting()) == 0 { // until it has requested
		runtime.Gosched()
	}
	if err := l.Unlock(); !errors.Is(err, mutex.ErrNotRequested) {
		t.Errorf("unlock of a lock that is waited for: %v, want %v", err, mutex.ErrNotRequested)
	}
	if err := l.Deliver(mutex.Message{Kind: mutex.Acknowledge, From: "b", To: "a", Sequence: 1, Clock: 5}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("lock: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the lock was not granted")
	}
}

func TestLockOfARequestedProcessFails(t *testing.T) {
	t.Parallel()
	p := process(t, "a", "b")
	if _, err := p.Request(); err != nil {
		t.Fatal(err)
	}
	l := mutex.NewMutex(p, lost{})
	if err := l.Deliver(mutex.Message{Kind: mutex.Acknowledge, From: "b", To: "a", Sequence: 1, Clock: 5}); err != nil {
		t.Errorf("deliver: %v", err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := l.Lock(ctx); !errors.Is(err, mutex.ErrRequested) {
			t.Errorf("lock: %v, want %v", err, mutex.ErrRequested)
		}
	}
}

// refusing is a network that refuses messages to b, and counts the others.
type refusing struct{ sent *int }

func (r refusing) Send(m mutex.Message) error {
	if m.To == "b" {
		return errors.New("b is away")
	}
	*r.sent++
	return nil
}

func TestMessagesThatCannotBeSentEndLock(t *testing.T) {
	t.Parallel()
	var sent int
	l := mutex.NewMutex(process(t, "a", "b", "c"), refusing{&sent})
	for i := range 3 {
		if err := l.Lock(t.Context()); err == nil {
			t.Error("the lock was taken")
		}
		if want := 2 * (i + 1); sent != want { // a request and its withdrawal
			t.Errorf("%d messages to c, want %d", sent, want)
		}
	}
}

// TestHostileMessagesNeverGrant has a process receive whatever b may send: while c is silent, it has no lock, and its queue does not grow.
func TestHostileMessagesNeverGrant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, err := mutex.New("a", []string{"b", "c"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Request(); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 50).Draw(t, "messages") {
			_, _ = p.Receive(mutex.Message{
				Kind: mutex.Kind(rapid.IntRange(0, 4).Draw(t, "kind")), From: rapid.SampledFrom([]string{"b", "a", "x"}).Draw(t, "from"),
				To: "a", Sequence: rapid.Uint64Range(0, 60).Draw(t, "sequence"), Clock: rapid.Int64().Draw(t, "clock"),
			})
			if p.Held() || len(p.Queue()) > 2 {
				t.Fatalf("held %v, queue %v", p.Held(), p.Queue())
			}
		}
	})
}
