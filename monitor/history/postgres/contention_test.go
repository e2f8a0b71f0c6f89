package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// TestWritersContend has relays of two processes use an outbox at once, whose statements follow each other as rapid draws, and
// which end now and then: no command is claimed that a living relay has, those of a group are claimed in order and by one at a
// time, none is lost, and the audit log is whole.
func TestWritersContend(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	first := open(t, address)
	defer closed(t, first)
	second := first.Beside(t, address)
	defer closed(t, second)
	stories, failed := 0, false
	rapid.Check(t, func(t *rapid.T) {
		if stories++; stories > testenv.Trials(300) && !failed {
			return
		}
		ended := false
		defer func() { failed = failed || !ended }() // then it is repeated
		s := newSchedule(rapid.SliceOfN(rapid.IntRange(0, 1), 20, 60).Draw(t, "turns"))
		c := &contention{held: make(map[int64]bool), story: stories, groups: make(map[string]int), high: make(map[string]int64), back: make(map[int64]bool)}
		before := &contender{contention: c, name: "before", Store: first.Stepped(func() {})}
		before.begin()
		for _, do := range []string{"enqueue", "claim", "settle", "enqueue"} {
			before.do(do)
		}
		before.do("die")
		var writers []*contender
		for i, d := range []interface {
			Stepped(step func()) tables.Store
		}{first, second} {
			writers = append(writers, &contender{
				contention: c, name: fmt.Sprintf("writer %d", i), Store: d.Stepped(func() { s.step(i) }),
				plan: rapid.SliceOfN(rapid.SampledFrom(contenderSteps()), 1, 8).Draw(t, "plan"),
			})
		}
		var all sync.WaitGroup
		for i, w := range writers {
			all.Go(func() {
				defer s.end(i)
				w.begin()
				for _, do := range w.plan {
					w.do(do)
				}
			})
		}
		s.run()
		all.Wait()
		c.drain(first, writers)
		for _, problem := range c.problems {
			t.Error(problem)
		}
		if len(c.problems) > 0 {
			t.FailNow()
		}
		ended = true
	})
}

// schedule says which of two writers goes on.
type schedule struct {
	turns []int
	ready chan int // a writer waits for its turn, or has ended
	next  [2]chan struct{}
	ended [2]chan struct{}
}

func newSchedule(turns []int) *schedule {
	s := &schedule{turns: turns, ready: make(chan int, 2)}
	for i := range s.next {
		s.next[i], s.ended[i] = make(chan struct{}), make(chan struct{})
	}
	return s
}

// step waits for the turn of a writer.
func (s *schedule) step(i int) {
	s.ready <- i
	<-s.next[i]
}

func (s *schedule) end(i int) { close(s.ended[i]); s.ready <- i }

// patience is how long a writer whose turn it is may keep the other waiting: it may wait for a lock that the other has.
const patience = 5 * time.Millisecond

// run lets one writer after the other take a step until both have ended.
func (s *schedule) run() {
	var waits, over [2]bool
	for n := 0; !over[0] || !over[1]; {
		timeout := time.After(patience)
		for waits[0] != !over[0] || waits[1] != !over[1] { // both are to be where they can be told to go on
			select {
			case i := <-s.ready:
				select {
				case <-s.ended[i]:
					over[i], waits[i] = true, false
				default:
					waits[i] = true
				}
				continue
			case <-timeout:
			}
			if waits[0] || waits[1] {
				break
			}
			timeout = time.After(patience)
		}
		turn := s.turns[n%len(s.turns)]
		n++
		for _, i := range []int{turn, 1 - turn} {
			if waits[i] {
				waits[i] = false
				s.next[i] <- struct{}{}
				break
			}
		}
	}
}

// contention is what the writers know of each other's commands.
type contention struct {
	mu       sync.Mutex
	story    int
	relays   int
	commands []history.Command
	held     map[int64]bool   // claimed, without an outcome
	groups   map[string]int   // commands in flight of a group
	high     map[string]int64 // newest command of a group that was claimed
	back     map[int64]bool   // commands that may have been made pending again
	problems []string
}

func (c *contention) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// contender is one writer.
type contender struct {
	*contention
	tables.Store

	name  string
	plan  []string
	relay string
	mine  []history.Command // in flight

	former string // relay that has ended
	late   []history.Command
}

// begin has another relay claim from now on.
func (w *contender) begin() {
	w.mu.Lock()
	w.relays++
	w.relay = fmt.Sprintf("relay %d of story %d", w.relays, w.story)
	w.mu.Unlock()
	if _, err := w.BeginRelay(context.Background(), w.relay); err != nil {
		w.mu.Lock()
		w.problem("%s: begin: %v", w.name, err)
		w.mu.Unlock()
	}
}

// die ends the relay of the writer with all that it has in flight, of which it will try to record outcomes later.
func (w *contender) die(ctx context.Context) error {
	w.mu.Lock()
	for _, x := range w.mine {
		delete(w.held, x.ID)
		w.groups[x.Group]--
		w.back[x.ID] = true
	}
	w.mu.Unlock()
	w.former, w.late, w.mine = w.relay, w.mine, nil
	err := w.EndRelay(ctx, w.relay)
	w.begin()
	return err
}

// comeLate records outcomes in the name of a relay that has ended.
func (w *contender) comeLate(ctx context.Context, now time.Time) error {
	var outcomes []history.Outcome
	for _, x := range w.late {
		outcomes = append(outcomes, history.Outcome{ID: x.ID, State: history.CommandPending, DueAt: now})
	}
	return w.RecordOutcomes(ctx, w.former, now, outcomes)
}

func contenderSteps() []string {
	return []string{"claim", "settle", "claim", "requeue", "claim", "settle", "discard", "enqueue", "reclaim", "die", "late", "reclaim"}
}

func contendGroups() []string { return []string{"a", ""} }

func (w *contender) do(what string) {
	ctx, now := context.Background(), atNoon()
	var err error
	switch what {
	case "enqueue":
		var list []history.Command
		for _, group := range contendGroups() {
			list = append(list, history.Command{Kind: "task", Group: group, Payload: []byte(`{}`)}, history.Command{Kind: "task", Group: group})
		}
		list, _, err = w.Enqueue(ctx, history.CommandRequest{Commands: list, Audit: history.AuditRecord{At: now, Actor: w.name, Action: "publish"}})
		w.mu.Lock()
		w.commands = append(w.commands, list...)
		w.mu.Unlock()
	case "claim":
		var claimed history.Claimed
		claimed, err = w.Claim(ctx, w.relay, now, 4, 2)
		w.claimed(claimed.Commands)
	case "settle":
		err = w.settle(ctx, now)
	case "reclaim": // of relays that have ended: its own commands were claimed after the time
		_, err = w.Reclaim(ctx, w.relay, now, now, nil)
	case "die":
		err = w.die(ctx)
	case "late":
		err = w.comeLate(ctx, now)
	default:
		err = w.move(ctx, now, what)
	}
	if err != nil {
		w.mu.Lock()
		w.problem("%s: %s: %v", w.name, what, err)
		w.mu.Unlock()
	}
}

// claimed checks commands that were claimed.
func (w *contender) claimed(list []history.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	inFlight := make(map[string]int)
	for i := range list {
		x := &list[i]
		if w.held[x.ID] {
			w.problem("%s has claimed command %d, which is in flight", w.name, x.ID)
		}
		if w.groups[x.Group] > 0 {
			w.problem("%s has claimed command %d, although group %q has %d in flight", w.name, x.ID, x.Group, w.groups[x.Group])
		}
		if x.ID < w.high[x.Group] && !w.back[x.ID] {
			w.problem("%s has claimed command %d of group %q after %d", w.name, x.ID, x.Group, w.high[x.Group])
		}
		w.high[x.Group], w.held[x.ID] = max(w.high[x.Group], x.ID), true
		inFlight[x.Group]++
	}
	for group, n := range inFlight {
		w.groups[group] += n
	}
	w.mine = append(w.mine, list...)
}

// settle records an outcome of all that the writer has in flight: each third command is to be sent again, each third is given up.
func (w *contender) settle(ctx context.Context, now time.Time) error {
	states := []history.CommandState{history.CommandDone, history.CommandPending, history.CommandDead}
	var outcomes []history.Outcome
	w.mu.Lock()
	for _, x := range w.mine {
		state := states[(int(x.ID-w.commands[0].ID)+x.Attempts)%len(states)]
		outcomes = append(outcomes, history.Outcome{ID: x.ID, State: state, DueAt: now, Attempts: x.Attempts + 1})
		delete(w.held, x.ID)
		w.groups[x.Group]--
		w.back[x.ID] = w.back[x.ID] || state == history.CommandPending
	}
	w.mu.Unlock()
	w.mine = nil
	return w.RecordOutcomes(ctx, w.relay, now, outcomes)
}

// move requeues or discards all commands, the newest first, of which only some are in a state for it.
func (w *contender) move(ctx context.Context, now time.Time, what string) error {
	var ids []int64
	w.mu.Lock()
	for i, x := range w.commands {
		if what == "discard" && i%4 > 0 {
			continue
		}
		ids = append(ids, x.ID)
		w.back[x.ID] = w.back[x.ID] || what == "requeue"
	}
	w.mu.Unlock()
	slices.Reverse(ids)
	audit := history.AuditRecord{At: now, Actor: w.name, Action: what}
	var err error
	if what == "requeue" {
		_, err = w.Requeue(ctx, ids, now, time.Time{}, audit)
	} else {
		_, err = w.Discard(ctx, ids, now, audit)
	}
	return err
}

// drain ends all commands, and checks what is stored.
func (c *contention) drain(s history.Store, writers []*contender) {
	ctx, now := context.Background(), atNoon()
	check := func(what string, err error) {
		if err != nil {
			c.problem("%s: %v", what, err)
		}
	}
	for _, w := range writers {
		check("end", s.EndRelay(ctx, w.relay))
	}
	_, err := s.Reclaim(ctx, "drain", now, now, nil)
	check("reclaim", err)
	for {
		claimed, err := s.Claim(ctx, "drain", now, 100, 100)
		check("claim", err)
		if len(claimed.Commands) == 0 {
			break
		}
		var outcomes []history.Outcome
		for _, x := range claimed.Commands {
			outcomes = append(outcomes, history.Outcome{ID: x.ID, State: history.CommandDone})
		}
		check("record", s.RecordOutcomes(ctx, "drain", now, outcomes))
	}
	requests, total := make(map[int64]int), 0
	for _, x := range c.commands {
		stored, err := s.Command(ctx, x.ID)
		check("read", err)
		if !stored.State.Final() {
			c.problem("command %d stays %s", x.ID, stored.State)
		}
		requests[x.RequestID]++
	}
	stats, err := s.OutboxStats(ctx)
	check("stats", err)
	for _, n := range stats.States {
		total += n
	}
	all, _, err := s.Requests(ctx, history.CommandFilter{Limit: 500})
	check("requests", err)
	for _, r := range all {
		total -= r.Commands()
		if n, ok := requests[r.First.RequestID]; ok && n != r.Commands() {
			c.problem("request %d has %d commands, want %d", r.First.RequestID, r.Commands(), n)
		}
		delete(requests, r.First.RequestID)
	}
	if len(requests) > 0 || total != 0 && len(all) < 500 {
		c.problem("%d requests are not listed, and %d more commands are counted than there are", len(requests), total)
	}
	bad, err := s.VerifyAudit(ctx)
	check("verify", err)
	if bad != 0 {
		c.problem("audit record %d is not as it was written", bad)
	}
}

// atNoon is when everything in these tests happens.
func atNoon() time.Time { return time.UnixMicro(1_790_000_000_000_000) }
