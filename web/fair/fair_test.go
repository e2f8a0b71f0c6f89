package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/fair"
)

func client(name string) fair.Client { return fair.Client{Address: name} }

func ready(t *fair.Ticket) bool {
	select {
	case <-t.Ready():
		return true
	default:
		return false
	}
}

func count(tickets []*fair.Ticket) (n int) {
	for _, t := range tickets {
		if ready(t) {
			n++
		}
	}
	return n
}

func enter(s *fair.Slots, n int, c fair.Client) (tickets []*fair.Ticket) {
	for range n {
		tickets = append(tickets, s.Enter(c))
	}
	return tickets
}

func TestWhoAsksForMuchLeavesRoom(t *testing.T) {
	t.Parallel()
	s := fair.New(4)
	greedy := enter(s, 50, client("greedy"))
	if got := count(greedy); got != 2 {
		t.Errorf("the first client holds %d of 4 slots, want 2", got)
	}
	for _, name := range []string{"second", "third"} {
		if got := enter(s, 3, client(name)); count(got) != 1 {
			t.Errorf("the %s client holds %d slots, want 1", name, count(got))
		}
	}
}

func TestPartsOfAnAddressShareIt(t *testing.T) {
	t.Parallel()
	s := fair.New(8)
	got := 0
	for i := range 100 {
		got += count(enter(s, 10, fair.Client{Address: "one", Part: fmt.Sprint(i)}))
	}
	if got != 6 {
		t.Errorf("100 sockets of one address hold %d of 8 slots, want 6", got)
	}
	if other := s.Enter(client("two")); !ready(other) {
		t.Error("another address has to wait")
	}
}

// One slot goes round, whoever has queued before.
func TestClientsTakeTurns(t *testing.T) {
	t.Parallel()
	s := fair.New(1)
	line := append(enter(s, 20, client("greedy")), enter(s, 3, client("late"))...)
	var order string
	for len(line) > 3 {
		for i, k := range line {
			if ready(k) {
				order += k.By().Address[:1]
				k.Leave()
				line = append(line[:i:i], line[i+1:]...)
				break
			}
		}
	}
	if want := "glglglggg"; !strings.HasPrefix(order, want) {
		t.Errorf("served in the order %s, want %s…", order, want)
	}
}

func TestWhoeverPaysLeast(t *testing.T) {
	t.Parallel()
	s := fair.New(4)
	greedy, poor := client("greedy"), client("poor")
	enter(s, 9, greedy)
	shared := s.Enter(greedy)
	if ready(shared) {
		t.Fatal("the ticket of a client with its share is served")
	}
	shared.Join(poor)
	if !ready(shared) || shared.By() != poor {
		t.Errorf("ready = %v, paid by %v, want it to be served for the client that joined", ready(shared), shared.By())
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	s := fair.New(1)
	first := s.Enter(client("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ctx, client("b")); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
	enter(s, 64, client("b"))
	if _, err := s.Acquire(t.Context(), client("b")); !errors.Is(err, fair.ErrBusy) {
		t.Errorf("error = %v, want ErrBusy", err)
	}
	first.Leave()
	first.Leave()
	if got := fair.FromContext(fair.NewContext(t.Context(), client("x"))); got != client("x") {
		t.Errorf("client = %v, want x", got)
	}
}

// Whatever happens, no more slots are held than there are, and all are free in the end.
func TestSlotsAreNotLost(t *testing.T) {
	t.Parallel()
	const n = 5
	random := rand.New(rand.NewPCG(1, 2))
	s := fair.New(n)
	var live []*fair.Ticket
	for range 5_000 {
		c := fair.Client{Address: fmt.Sprint(random.IntN(3)), Part: fmt.Sprint(random.IntN(3))}
		switch i := random.IntN(len(live) + 1); {
		case i == len(live) || random.IntN(3) == 0:
			live = append(live, s.Enter(c, client("x")))
		case random.IntN(3) == 0:
			live[i].Join(c)
		default:
			live[i].Leave()
			live = append(live[:i:i], live[i+1:]...)
		}
		if got := count(live); got > n || got == 0 && len(live) > 0 {
			t.Fatalf("%d of %d tickets hold %d slots", got, len(live), n)
		}
	}
	for _, k := range live {
		k.Leave()
	}
	fresh := make([]*fair.Ticket, n)
	for i := range fresh {
		fresh[i] = s.Enter(client(fmt.Sprint(i)))
	}
	if got := count(fresh); got != n {
		t.Errorf("%d of %d slots are free at the end", got, n)
	}
}
