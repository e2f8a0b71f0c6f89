package historytest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/history"
)

func outboxes() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Commands are kept as they were enqueued": storeTest.commandsKept,
		"Commands say what is left open":          storeTest.commandsCompleted,
		"Commands of hostile texts are kept":      storeTest.commandsHostile,
		"Commands that are missing are missing":   storeTest.commandsMissing,
		"Commands are listed newest first":        storeTest.commandsListed,
		"Keys repeat nothing":                     storeTest.keysRepeat,
		"Keys are forgotten after a day":          storeTest.keysForgotten,
		"Keys hold when all ask at once":          storeTest.keysRace,
		"Claims keep the order of groups":         storeTest.claimsOrdered,
		"Claims are shared among groups":          storeTest.claimsShared,
		"Claims leave what has expired":           storeTest.claimsExpired,
		"Claims leave other schemas alone":        storeTest.claimsForeign,
		"Claims that are left are reclaimed":      storeTest.claimsReclaimed,
		"Relays leave each other's claims alone":  storeTest.claimsApart,
		"Relays that are gone do not come back":   storeTest.relaysGone,
		"Outcomes are settled once":               storeTest.settledOnce,
		"Answers are added":                       storeTest.answersAdded,
		"Dead letters are requeued":               storeTest.deadRequeued,
		"Dead letters are discarded":              storeTest.deadDiscarded,
		"Commands are summed up":                  storeTest.commandsSummed,
		"Requests are summarized":                 storeTest.requestsSummarized,
		"Requests are listed newest first":        storeTest.requestsPaged,
		"Audit records follow each other":         storeTest.auditChained,
		"Pages of the audit log are bounded":      storeTest.auditBounded,
		"The audit log is filtered":               storeTest.auditFiltered,
		"Commands have one state at a time":       storeTest.commandsModelled,
	}
}

// self is the relay that claims.
const self = "relay"

// startTime is when commands are enqueued.
func startTime() time.Time { return time.UnixMicro(1_790_000_000_000_000) }

// after is some seconds later.
func after(seconds int) time.Time { return startTime().Add(time.Duration(seconds) * time.Second) }

// enqueue writes commands as an order of its own.
func (c storeTest) enqueue(commands ...history.Command) []history.Command {
	c.Helper()
	list, replayed, err := c.Enqueue(c.Context(), history.CommandRequest{
		Commands: commands, Audit: history.AuditRecord{At: startTime(), Actor: "ann", Action: "test"},
	})
	if err != nil || replayed {
		c.Fatalf("enqueue: replayed %v, error %v", replayed, err)
	}
	if len(list) != len(commands) {
		c.Fatalf("%d commands came of %d", len(list), len(commands))
	}
	return list
}

// commandOf returns a command of a group.
func commandOf(group string) history.Command {
	return history.Command{Kind: "task", Group: group, Target: "queue " + group, Summary: "Publish", Payload: []byte(`{}`)}
}

func (c storeTest) claim(now time.Time, limit, each int) []int64 {
	c.Helper()
	claimed, err := c.Claim(c.Context(), self, now, limit, each)
	if err != nil {
		c.Fatalf("claim: %v", err)
	}
	ids := make([]int64, len(claimed.Commands))
	for i, x := range claimed.Commands {
		if ids[i] = x.ID; x.State != history.CommandInFlight || !x.ClaimedAt.Equal(now) {
			c.Errorf("claimed command is %s, claimed %v", x.State, x.ClaimedAt)
		}
	}
	return ids
}

func (c storeTest) settle(now time.Time, outcomes ...history.Outcome) {
	c.Helper()
	if err := c.RecordOutcomes(c.Context(), self, now, outcomes); err != nil {
		c.Fatalf("settle: %v", err)
	}
}

func (c storeTest) answer(now time.Time, replies ...history.CommandReplies) {
	c.Helper()
	if err := c.AddReplies(c.Context(), now, replies); err != nil {
		c.Fatalf("answer: %v", err)
	}
}

func (c storeTest) command(id int64) history.Command {
	c.Helper()
	found, err := c.Command(c.Context(), id)
	if err != nil {
		c.Fatalf("command %d: %v", id, err)
	}
	return found
}

func (c storeTest) list(f history.CommandFilter) []history.Command {
	c.Helper()
	var all []history.Command
	for {
		page, next, err := c.Commands(c.Context(), f)
		if err != nil {
			c.Fatalf("commands %+v: %v", f, err)
		}
		all = append(all, page...)
		if f.Before = next; next == 0 {
			return all
		}
	}
}

func (c storeTest) stats() history.OutboxStats {
	c.Helper()
	s, err := c.OutboxStats(c.Context())
	if err != nil {
		c.Fatalf("stats: %v", err)
	}
	return s
}

func ids(commands []history.Command) []int64 {
	list := make([]int64, len(commands))
	for i := range commands {
		list[i] = commands[i].ID
	}
	return list
}

func (c storeTest) expectStates(list []int64, want ...history.CommandState) {
	c.Helper()
	got := make([]history.CommandState, len(list))
	for i, id := range list {
		got[i] = c.command(id).State
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("states (-want +got):\n%s", diff)
	}
}

func (c storeTest) commandsKept() {
	full := history.Command{
		Schema: history.CommandSchema, Kind: "control", Group: "celery@w1", Target: "celery@w1", Summary: "Grow the pool by 2",
		Payload: []byte("{\"n\":2}\x00\xff"), TaskID: "t1", Attempts: 1, Deferrals: 2, LastError: "no",
		Expected: []string{"celery@w1", "celery@w2"}, Replies: []history.Reply{{Node: "celery@w1", At: after(1), Text: "ok", OK: true, Clock: 9}},
		CreatedAt: after(1), DueAt: after(2), ExpiresAt: after(60), Actor: "bob",
	}
	first := c.enqueue(commandOf("a"))
	got := c.enqueue(full, commandOf("b"))
	if got[0].ID <= first[0].ID || got[1].ID <= got[0].ID {
		c.Errorf("ids %d, %d, %d do not rise", first[0].ID, got[0].ID, got[1].ID)
	}
	full.ID, full.RequestID, full.State = got[0].ID, got[0].ID, history.CommandPending
	if got[1].RequestID != full.RequestID || first[0].RequestID != first[0].ID {
		c.Errorf("orders are %d and %d, want %d and %d", first[0].RequestID, got[1].RequestID, first[0].ID, full.RequestID)
	}
	if diff := cmp.Diff(full, got[0]); diff != "" {
		c.Errorf("command enqueued (-want +got):\n%s", diff)
	}
	c.reopen()
	if diff := cmp.Diff(full, c.command(full.ID)); diff != "" {
		c.Errorf("command kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got[1], c.command(got[1].ID), cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("other command kept (-want +got):\n%s", diff)
	}
}

func (c storeTest) commandsCompleted() {
	got := c.enqueue(history.Command{Kind: "task"})[0]
	if got.Schema != history.CommandSchema || got.Actor != "ann" || !got.CreatedAt.Equal(startTime()) || !got.DueAt.Equal(startTime()) ||
		got.State != history.CommandPending || !got.ExpiresAt.IsZero() {
		c.Errorf("command is %+v", got)
	}
	if diff := cmp.Diff(got, c.command(got.ID), cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("command kept (-enqueued +got):\n%s", diff)
	}
}

func (c storeTest) commandsHostile() {
	want := make(map[int64]history.Command)
	for _, text := range hostile() {
		x := c.enqueue(history.Command{
			Kind: text, Group: text, Target: text, Summary: text, Payload: []byte(text), TaskID: text, LastError: text, Actor: text + "a",
		})[0]
		want[x.ID] = x
	}
	c.reopen()
	got := make(map[int64]history.Command)
	for _, x := range c.list(history.CommandFilter{Limit: 3}) {
		got[x.ID] = x
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("commands (-want +got):\n%s", diff)
	}
	claimed := c.claim(after(1), 500, 500)
	if len(claimed) != len(want) {
		c.Errorf("%d commands claimed, want %d", len(claimed), len(want))
	}
	if bad, err := c.VerifyAudit(c.Context()); bad != 0 || err != nil {
		c.Errorf("audit record %d is not as it was: %v", bad, err)
	}
}

func (c storeTest) commandsMissing() {
	for _, id := range []int64{0, -1, 1, 1 << 62} {
		if _, err := c.Command(c.Context(), id); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("command %d: error %v, want %v", id, err, history.ErrNotFound)
		}
	}
	if all := c.list(history.CommandFilter{Limit: 10}); len(all) > 0 {
		c.Errorf("commands of an empty outbox: %v", all)
	}
	if claimed := c.claim(after(1), 10, 10); len(claimed) > 0 {
		c.Errorf("claimed %v of an empty outbox", claimed)
	}
}

func (c storeTest) commandsListed() {
	control := history.Command{Kind: "control", Target: "celery@w1", Group: "celery@w1"}
	broadcast := history.Command{Kind: "control", Target: "every worker", Group: "workers", Expected: []string{"celery@w2"}}
	about := history.Command{Kind: "task", Target: "queue mail", Group: "q", TaskID: "t1", Actor: "bob"}
	list := ids(c.enqueue(control, broadcast, about))
	other := ids(c.enqueue(about))
	c.claim(after(1), 10, 1) // the last one stays, being the second of its group
	c.settle(after(1),
		history.Outcome{ID: list[0], State: history.CommandSent, SentAt: after(1), Expected: []string{"celery@w1"}},
		history.Outcome{ID: list[1], State: history.CommandSent, SentAt: after(1), Expected: []string{"celery@w2", "celery@w3"}},
		history.Outcome{ID: list[2], State: history.CommandDone, SentAt: after(1)})
	c.answer(after(2), history.CommandReplies{ID: list[1], Replies: []history.Reply{{Node: "celery@w4", At: after(2)}}, State: history.CommandNoReply})
	for kind, want := range map[string][]string{"task": {"t1"}, "control": nil} {
		got, err := c.TasksWithCommands(c.Context(), kind, []string{"t0", "t1", "", "t1", `"`})
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			c.Errorf("tasks with commands of kind %s: error %v (-want +got):\n%s", kind, err, diff)
		}
	}
	for name, test := range map[string]struct {
		f    history.CommandFilter
		want []int64
	}{
		"all":                {history.CommandFilter{}, []int64{other[0], list[2], list[1], list[0]}},
		"before":             {history.CommandFilter{Before: list[2]}, []int64{list[1], list[0]}},
		"pending":            {history.CommandFilter{States: []history.CommandState{history.CommandPending}}, []int64{other[0]}},
		"some states":        {history.CommandFilter{States: []history.CommandState{history.CommandNoReply, history.CommandPending, history.CommandDone}}, []int64{other[0], list[2], list[1]}},
		"no such state":      {history.CommandFilter{States: []history.CommandState{"x"}}, nil},
		"kind":               {history.CommandFilter{Kind: "control"}, []int64{list[1], list[0]}},
		"kind and state":     {history.CommandFilter{Kind: "control", States: []history.CommandState{history.CommandSent}}, []int64{list[0]}},
		"task":               {history.CommandFilter{TaskID: "t1"}, []int64{other[0], list[2]}},
		"actor":              {history.CommandFilter{Actor: "bob"}, []int64{other[0], list[2]}},
		"order":              {history.CommandFilter{RequestID: list[0]}, []int64{list[2], list[1], list[0]}},
		"worker it is for":   {history.CommandFilter{Worker: "celery@w1"}, []int64{list[0]}},
		"worker expected":    {history.CommandFilter{Worker: "celery@w2"}, []int64{list[1]}},
		"worker found":       {history.CommandFilter{Worker: "celery@w3"}, []int64{list[1]}},
		"worker answered":    {history.CommandFilter{Worker: "celery@w4"}, []int64{list[1]}},
		"queue, no worker":   {history.CommandFilter{Worker: "queue mail"}, nil},
		"everything at once": {history.CommandFilter{Kind: "task", TaskID: "t1", Actor: "bob", RequestID: other[0], States: []history.CommandState{history.CommandPending}}, []int64{other[0]}},
	} {
		for _, limit := range []int{1, 2, 500} {
			test.f.Limit = limit
			if diff := cmp.Diff(test.want, ids(c.list(test.f)), cmpopts.EquateEmpty()); diff != "" {
				c.Errorf("%s, %d at once (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}

func (c storeTest) keysRepeat() {
	order := func(key, print string) history.CommandRequest {
		return history.CommandRequest{Commands: []history.Command{commandOf("a"), commandOf("b")}, Audit: history.AuditRecord{At: startTime()}, IdempotencyKey: key, Fingerprint: print}
	}
	if _, ok, err := c.CommandsByKey(c.Context(), "k1", "p1", startTime()); ok || err != nil {
		c.Errorf("replay of a new key: %v, %v", ok, err)
	}
	first, replayed, err := c.Enqueue(c.Context(), order("k1", "p1"))
	if err != nil || replayed {
		c.Fatalf("enqueue: replayed %v, error %v", replayed, err)
	}
	c.reopen()
	again, replayed, err := c.Enqueue(c.Context(), order("k1", "p1"))
	if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" || !replayed || err != nil {
		c.Errorf("enqueue again: replayed %v, error %v, (-want +got):\n%s", replayed, err, diff)
	}
	again, ok, err := c.CommandsByKey(c.Context(), "k1", "p1", after(5))
	if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" || !ok || err != nil {
		c.Errorf("replay: %v, error %v, (-want +got):\n%s", ok, err, diff)
	}
	if _, _, err := c.Enqueue(c.Context(), order("k1", "p2")); !errors.Is(err, history.ErrKeyReused) {
		c.Errorf("enqueue something else: error %v, want %v", err, history.ErrKeyReused)
	}
	if _, _, err := c.CommandsByKey(c.Context(), "k1", "p2", startTime()); !errors.Is(err, history.ErrKeyReused) {
		c.Errorf("replay something else: error %v, want %v", err, history.ErrKeyReused)
	}
	if got := len(c.list(history.CommandFilter{Limit: 10})); got != 2 {
		c.Errorf("%d commands, want 2", got)
	}
	if records, _, err := c.AuditLog(c.Context(), history.AuditFilter{Limit: 10}); len(records) != 1 || err != nil {
		c.Errorf("%d audit records, want 1: %v", len(records), err)
	}
}

func (c storeTest) keysForgotten() {
	enqueue := func(at time.Time, print string) ([]history.Command, bool) {
		list, replayed, err := c.Enqueue(c.Context(), history.CommandRequest{
			Commands: []history.Command{commandOf("a")}, Audit: history.AuditRecord{At: at}, IdempotencyKey: "k", Fingerprint: print,
		})
		if err != nil {
			c.Fatalf("enqueue at %v: %v", at, err)
		}
		return list, replayed
	}
	day := 24 * 60 * 60
	first, _ := enqueue(startTime(), "p")
	if again, replayed := enqueue(after(day-1), "p"); !replayed || again[0].ID != first[0].ID {
		c.Error("the key is forgotten before a day is over")
	}
	if next, replayed := enqueue(after(day), "other"); replayed || next[0].ID == first[0].ID {
		c.Error("the key is not forgotten after a day")
	}
}

func (c storeTest) keysRace() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	orders := make(map[int64]int)
	fresh := 0
	for range 16 {
		wg.Go(func() {
			list, replayed, err := c.Enqueue(c.Context(), history.CommandRequest{
				Commands: []history.Command{commandOf("a"), commandOf("b")}, Audit: history.AuditRecord{At: startTime()}, IdempotencyKey: "k", Fingerprint: "p",
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(list) != 2 {
				c.Errorf("enqueue: %d commands, error %v", len(list), err)
				return
			}
			orders[list[0].RequestID]++
			if !replayed {
				fresh++
			}
		})
	}
	wg.Wait()
	if len(orders) != 1 || fresh != 1 {
		c.Errorf("%d orders, %d of them new, want 1 and 1", len(orders), fresh)
	}
}

func (c storeTest) commandsSummed() {
	if diff := cmp.Diff(history.OutboxStats{}, c.stats(), cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("stats of nothing (-want +got):\n%s", diff)
	}
	var commands []history.Command
	for i := range 6 {
		x := commandOf(fmt.Sprintf("g%d", i))
		x.CreatedAt = after(i)
		commands = append(commands, x)
	}
	foreign := commandOf("foreign")
	foreign.Schema = history.CommandSchema + 1
	list := ids(c.enqueue(append(commands, foreign)...))
	c.claim(after(10), 5, 5)
	c.settle(after(11),
		history.Outcome{ID: list[0], State: history.CommandDead, Error: "no such queue"},
		history.Outcome{ID: list[1], State: history.CommandDead, Error: "no such queue"},
		history.Outcome{ID: list[2], State: history.CommandPending, Error: "refused", DueAt: after(99)},
		history.Outcome{ID: list[3], State: history.CommandDone, Error: "", SentAt: after(11)})
	want := history.OutboxStats{
		States: map[history.CommandState]int{
			history.CommandDead: 2, history.CommandPending: 3, history.CommandDone: 1, history.CommandInFlight: 1,
		},
		OldestPending: after(2), OtherSchema: 1, DeadLetters: 2,
		TopErrors: []history.ErrorCount{{Error: "no such queue", N: 2}, {Error: "refused", N: 1}},
	}
	c.reopen()
	if diff := cmp.Diff(want, c.stats()); diff != "" {
		c.Errorf("stats (-want +got):\n%s", diff)
	}
}
