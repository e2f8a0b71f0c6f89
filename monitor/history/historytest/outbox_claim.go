package historytest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/history"
)

func (c storeTest) expectClaim(what string, now time.Time, limit, each int, want ...int64) {
	c.Helper()
	if diff := cmp.Diff(want, c.claim(now, limit, each), cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("claimed %s (-want +got):\n%s", what, diff)
	}
}

func (c storeTest) claimsOrdered() {
	late := commandOf("b")
	late.DueAt = after(100)
	list := ids(c.enqueue(commandOf("a"), commandOf("b"), commandOf("a"), late, commandOf("b"), commandOf("c")))
	c.expectClaim("before anything is due", after(-1), 10, 10)
	c.expectClaim("all but what is not due and what is behind it", after(1), 10, 10, list[0], list[2], list[1], list[5])
	more := ids(c.enqueue(commandOf("a")))
	c.expectClaim("while its group is in flight", after(200), 10, 10)
	c.settle(after(2),
		history.Outcome{ID: list[1], State: history.CommandDone},
		history.Outcome{ID: list[0], State: history.CommandPending, DueAt: after(50), Attempts: 1, Error: "no"})
	c.expectClaim("behind what is in flight still", after(60), 10, 10)
	c.settle(after(3), history.Outcome{ID: list[2], State: history.CommandPending})
	c.expectClaim("behind what has to be tried again", after(49), 10, 10)
	c.expectClaim("when that is due", after(50), 10, 10, list[0], list[2], more[0])
	c.expectClaim("when the late one is", after(100), 10, 10, list[3], list[4])
}

func (c storeTest) claimsShared() {
	var a []history.Command
	for range 10 {
		a = append(a, commandOf("a"))
	}
	first := ids(c.enqueue(a...))
	other := ids(c.enqueue(commandOf("b"), commandOf("b"), commandOf("c")))
	c.expectClaim("one at most", startTime(), 1, 10, first[0])
	c.settle(startTime(), history.Outcome{ID: first[0], State: history.CommandPending})
	c.expectClaim("few", startTime(), 4, 2, first[0], other[0], other[2])
	c.settle(startTime(), history.Outcome{ID: first[0], State: history.CommandPending},
		history.Outcome{ID: other[0], State: history.CommandDone}, history.Outcome{ID: other[2], State: history.CommandDone})
	c.expectClaim("many", startTime(), 100, 4, append(first[:4:4], other[1])...)
}

func (c storeTest) claimsExpired() {
	soon := func(group string) history.Command { x := commandOf(group); x.ExpiresAt = after(60); return x }
	list := ids(c.enqueue(soon("a"), commandOf("a"), soon("b"), soon("c")))
	c.expectClaim("in time", after(59), 1, 1, list[0])
	claimed, err := c.Claim(c.Context(), self, after(60), 10, 10)
	if err != nil || claimed.Expired != 2 || len(claimed.Commands) != 0 {
		c.Errorf("claimed %d, %d expired, want 0 and 2: %v", len(claimed.Commands), claimed.Expired, err)
	}
	c.expectStates(list, history.CommandInFlight, history.CommandPending, history.CommandExpired, history.CommandExpired)
	if got := c.command(list[2]); !got.DoneAt.Equal(after(60)) || !got.SentAt.IsZero() {
		c.Errorf("expired command is done %v, sent %v", got.DoneAt, got.SentAt)
	}
	c.settle(after(61), history.Outcome{ID: list[0], State: history.CommandPending})
	c.expectClaim("behind one that has expired", after(61), 10, 10, list[1])
	c.expectStates(list, history.CommandExpired, history.CommandInFlight, history.CommandExpired, history.CommandExpired)
}

func (c storeTest) claimsForeign() {
	foreign := commandOf("a")
	foreign.Schema, foreign.ExpiresAt = history.CommandSchema+1, after(60)
	older := commandOf("b")
	older.Schema = history.CommandSchema - 1
	if older.Schema == 0 {
		older.Schema = -1 // 0 is left open
	}
	list := ids(c.enqueue(foreign, commandOf("a"), older))
	before := []history.Command{c.command(list[0]), c.command(list[2])}
	c.expectClaim("of this schema", after(100), 10, 10, list[1])
	c.expectReclaimed(self, after(1000), nil, history.Reclaimed{Pending: 1})
	if diff := cmp.Diff(before, []history.Command{c.command(list[0]), c.command(list[2])}); diff != "" {
		c.Errorf("other schemas changed (-before +after):\n%s", diff)
	}
	if got := c.stats(); got.OtherSchema != 2 || got.States[history.CommandPending] != 3 {
		c.Errorf("%d foreign of %d pending, want 2 of 3", got.OtherSchema, got.States[history.CommandPending])
	}
	if n, err := c.Discard(c.Context(), list, after(2), history.AuditRecord{At: after(2)}); n != 3 || err != nil {
		c.Errorf("discarded %d, want 3: %v", n, err)
	}
	if got := c.stats().OtherSchema; got != 0 {
		c.Errorf("%d foreign after they were discarded", got)
	}
}

func (c storeTest) claimsReclaimed() {
	list := ids(c.enqueue(commandOf("a"), commandOf("b"), commandOf("c")))
	c.expectClaim("early", after(1), 1, 1, list[0])
	c.expectClaim("later", after(100), 10, 10, list[1], list[2])
	c.reopen()
	c.expectReclaimed(self, after(60), nil, history.Reclaimed{Pending: 1}) // what was claimed early
	c.expectStates(list, history.CommandPending, history.CommandInFlight, history.CommandInFlight)
	c.expectReclaimed(self, after(200), []int64{list[1]}, history.Reclaimed{Pending: 1}) // what is not held
	c.expectStates(list, history.CommandPending, history.CommandInFlight, history.CommandPending)
	if got := c.command(list[0]); got.Attempts != 0 || !got.ClaimedAt.IsZero() {
		c.Errorf("reclaimed command has %d attempts, claimed %v", got.Attempts, got.ClaimedAt)
	}
}

func (c storeTest) expectReclaimed(relay string, before time.Time, except []int64, want history.Reclaimed) {
	c.Helper()
	if got, err := c.Reclaim(c.Context(), relay, after(1000), before, except); got != want || err != nil {
		c.Errorf("%s has reclaimed %+v, want %+v: %v", relay, got, want, err)
	}
}

// beginRelays lets relays claim.
func (c storeTest) beginRelays(names ...string) {
	c.Helper()
	for _, name := range names {
		if _, err := c.BeginRelay(c.Context(), name); err != nil {
			c.Fatal(err)
		}
	}
}

// claimsApart has two relays share an outbox.
func (c storeTest) claimsApart() {
	c.beginRelays(self, "other")
	list := ids(c.enqueue(commandOf("a"), commandOf("b"), commandOf("a"), commandOf("c")))
	c.expectClaim("by one", after(1), 2, 1, list[0], list[1])
	claimed, err := c.Claim(c.Context(), "other", after(1), 10, 10)
	if err != nil || len(claimed.Commands) != 1 || claimed.Commands[0].ID != list[3] {
		c.Fatalf("the other has claimed %v: %v", ids(claimed.Commands), err)
	}
	c.settle(after(2), history.Outcome{ID: list[3], State: history.CommandDead}, history.Outcome{ID: list[1], State: history.CommandSent, SentAt: after(2)})
	want := []history.CommandState{history.CommandInFlight, history.CommandSent, history.CommandPending, history.CommandInFlight}
	c.expectStates(list, want...)
	c.expectReclaimed("other", after(0), nil, history.Reclaimed{})
	c.expectStates(list, want...)
	if err := c.EndRelay(c.Context(), self); err != nil {
		c.Fatal(err)
	}
	c.expectReclaimed("other", after(0), nil, history.Reclaimed{Pending: 1, Unanswered: 1})
	c.settle(after(3), history.Outcome{ID: list[0], State: history.CommandDone}) // too late
	c.expectStates(list, history.CommandPending, history.CommandNoReply, history.CommandPending, history.CommandInFlight)
	if got := c.command(list[1]).DoneAt; !got.Equal(after(1000)) {
		c.Errorf("the unanswered one is done %v", got)
	}
	claimed, err = c.Claim(c.Context(), "other", after(4), 10, 10)
	if err != nil || len(claimed.Commands) != 2 || claimed.Commands[0].ID != list[0] {
		c.Errorf("the other has claimed %v: %v", ids(claimed.Commands), err)
	}
}

// relaysGone has relays go on, and end.
func (c storeTest) relaysGone() {
	c.beginRelays(self, "other")
	renew := func(name string, want error) {
		c.Helper()
		if err := c.RenewRelay(c.Context(), name); !errors.Is(err, want) {
			c.Errorf("renewed %s: error %v, want %v", name, err, want)
		}
	}
	renew(self, nil)
	renew("nobody", history.ErrNotFound)
	if err := c.EndRelay(c.Context(), self); err != nil {
		c.Fatal(err)
	}
	renew(self, history.ErrNotFound)
	renew("other", nil)
}

func (c storeTest) settledOnce() {
	list := ids(c.enqueue(commandOf("a"), commandOf("b")))
	c.expectClaim("both", after(1), 10, 10, list...)
	done := history.Outcome{ID: list[0], State: history.CommandSent, SentAt: after(2), Expected: []string{"w1"}, Attempts: 2, Deferrals: 3}
	c.settle(after(3), done, history.Outcome{ID: 4711, State: history.CommandDone})
	got := c.command(list[0])
	if got.State != history.CommandSent || !got.SentAt.Equal(after(2)) || got.Attempts != 2 || got.Deferrals != 3 || !got.DoneAt.IsZero() {
		c.Errorf("settled command is %+v", got)
	}
	c.settle(after(4), history.Outcome{ID: list[0], State: history.CommandDead, Error: "late"})
	if diff := cmp.Diff(got, c.command(list[0])); diff != "" {
		c.Errorf("settled again (-want +got):\n%s", diff)
	}
	c.settle(after(5), history.Outcome{ID: list[1], State: history.CommandDead, Error: "no"})
	if got := c.command(list[1]); got.State != history.CommandDead || got.LastError != "no" || !got.DoneAt.Equal(after(5)) {
		c.Errorf("dead command is %+v", got)
	}
}

func (c storeTest) answersAdded() {
	list := ids(c.enqueue(commandOf("a"), commandOf("b")))
	c.expectClaim("both", after(1), 10, 10, list...)
	c.settle(after(1), history.Outcome{ID: list[0], State: history.CommandSent, SentAt: after(1), Expected: []string{"w1", "w2"}})
	w1 := history.Reply{Node: "w1", At: after(2), Text: "ok", OK: true, Clock: 5}
	w2 := history.Reply{Node: "w2", At: after(3), Text: "no \x00 \u2028 <b>"}
	c.answer(after(2), history.CommandReplies{ID: list[0], Replies: []history.Reply{w1}, State: history.CommandSent})
	if got := c.command(list[0]); got.State != history.CommandSent || !got.DoneAt.IsZero() {
		c.Errorf("command with one answer is %s, done %v", got.State, got.DoneAt)
	}
	c.answer(after(3), history.CommandReplies{ID: list[0], Replies: []history.Reply{w2}, State: history.CommandDone},
		history.CommandReplies{ID: list[1], Replies: []history.Reply{w2}, State: history.CommandDone}, history.CommandReplies{ID: 4711})
	c.answer(after(4), history.CommandReplies{ID: list[0], State: history.CommandNoReply})
	got := c.command(list[0])
	if diff := cmp.Diff([]history.Reply{w1, w2}, got.Replies); diff != "" || got.State != history.CommandDone || !got.DoneAt.Equal(after(3)) {
		c.Errorf("command is %s, done %v, answers (-want +got):\n%s", got.State, got.DoneAt, diff)
	}
	if got := c.command(list[1]); got.State != history.CommandInFlight || len(got.Replies) > 0 {
		c.Errorf("command that was not sent is %s with %d answers", got.State, len(got.Replies))
	}
}

// dead returns three dead commands and one that is pending.
func (c storeTest) dead() []int64 {
	c.Helper()
	list := ids(c.enqueue(commandOf("a"), commandOf("a"), commandOf("b")))
	c.expectClaim("three", after(1), 10, 10, list...)
	for _, id := range list {
		c.settle(after(2), history.Outcome{ID: id, State: history.CommandDead, Attempts: 8, Error: "no"})
	}
	return append(list, ids(c.enqueue(commandOf("c")))...)
}

func (c storeTest) deadRequeued() {
	list := c.dead()
	audit := history.AuditRecord{At: after(10), Actor: "bob", Action: "requeue", Target: "dead letters"}
	n, err := c.Requeue(c.Context(), []int64{list[1], list[0], list[3], list[1], 4711}, after(10), after(70), audit)
	if n != 2 || err != nil {
		c.Errorf("requeued %d, want 2: %v", n, err)
	}
	c.expectStates(list, history.CommandPending, history.CommandPending, history.CommandDead, history.CommandPending)
	if got := c.command(list[0]); got.Attempts != 0 || !got.DueAt.Equal(after(10)) || !got.ExpiresAt.Equal(after(70)) || !got.DoneAt.IsZero() {
		c.Errorf("requeued command is %+v", got)
	}
	if got := c.stats().DeadLetters; got != 1 {
		c.Errorf("%d dead letters, want 1", got)
	}
	c.expectClaim("again", after(11), 10, 10, list[0], list[1], list[3])
	records, _, err := c.AuditLog(c.Context(), history.AuditFilter{Limit: 1})
	if err != nil || len(records) != 1 || records[0].Action != "requeue" || records[0].Commands != 2 || records[0].FirstCommand != list[1] {
		c.Errorf("audit records are %+v: %v", records, err)
	}
	if n, err := c.Requeue(c.Context(), []int64{4711}, after(10), time.Time{}, audit); n != 0 || err != nil {
		c.Errorf("requeued %d, want 0: %v", n, err)
	}
	if again, _, err := c.AuditLog(c.Context(), history.AuditFilter{Limit: 1}); err != nil || again[0].ID != records[0].ID {
		c.Errorf("requeuing nothing wrote a record: %v", err)
	}
}

func (c storeTest) deadDiscarded() {
	list := c.dead()
	n, err := c.Discard(c.Context(), []int64{list[2], list[3]}, after(10), history.AuditRecord{At: after(10), Action: "discard"})
	if n != 2 || err != nil {
		c.Errorf("discarded %d, want 2: %v", n, err)
	}
	c.expectStates(list, history.CommandDead, history.CommandDead, history.CommandDiscarded, history.CommandDiscarded)
	if got := c.command(list[2]); !got.DoneAt.Equal(after(10)) || got.LastError != "no" {
		c.Errorf("discarded command is %+v", got)
	}
	c.expectClaim("nothing of it", after(11), 10, 10)
	if n, err := c.Requeue(c.Context(), list[2:], after(12), time.Time{}, history.AuditRecord{}); n != 0 || err != nil {
		c.Errorf("requeued %d that were discarded: %v", n, err)
	}
	if got := c.stats().DeadLetters; got != 2 {
		c.Errorf("%d dead letters, want 2", got)
	}
}

func (c storeTest) auditChained() {
	if bad, err := c.VerifyAudit(c.Context()); bad != 0 || err != nil {
		c.Errorf("empty log: record %d is bad, error %v", bad, err)
	}
	var want []history.AuditRecord
	for i := range 7 {
		a := history.AuditRecord{
			At: after(i), Kind: history.AuditAction, Outcome: history.AuditAccepted, Actor: "ann", Method: "basic", Role: "operator",
			RemoteAddr: "10.0.0.7", Endpoint: "/act/task", Action: "revoke", Target: "celery@w1", Detail: `{"n":1}`, Commands: 1,
		}
		list, _, err := c.Enqueue(c.Context(), history.CommandRequest{Commands: []history.Command{commandOf("a")}, Audit: a})
		if err != nil {
			c.Fatalf("enqueue: %v", err)
		}
		a.ID, a.FirstCommand = int64(i+1), list[0].ID
		want = append([]history.AuditRecord{a}, want...)
	}
	c.reopen()
	var got []history.AuditRecord
	seen := make(map[string]bool)
	for before := int64(0); ; {
		page, next, err := c.AuditLog(c.Context(), history.AuditFilter{Before: before, Limit: 3})
		if err != nil {
			c.Fatalf("audit: %v", err)
		}
		for _, a := range page {
			if len(a.Hash) != 64 || seen[a.Hash] {
				c.Errorf("record %d has the hash %q", a.ID, a.Hash)
			}
			seen[a.Hash] = true
			got = append(got, a)
		}
		if before = next; next == 0 {
			break
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(history.AuditRecord{}, "Hash")); diff != "" {
		c.Errorf("records (-want +got):\n%s", diff)
	}
	if bad, err := c.VerifyAudit(c.Context()); bad != 0 || err != nil {
		c.Errorf("record %d is bad, error %v", bad, err)
	}
}

// auditFiltered reads records of some kinds, users, outcomes and times.
func (c storeTest) auditFiltered() {
	all := []history.AuditRecord{
		{At: after(1), Action: "revoke", Actor: "ann"}, // an action that was accepted
		{At: after(2), Kind: history.AuditLogin, Outcome: history.AuditRefused, Actor: "eve", Action: "login"},
		{At: after(3), Kind: history.AuditLogin, Outcome: history.AuditAccepted, Actor: "ann", Action: "login"},
		{At: after(4), Kind: history.AuditExport, Outcome: history.AuditFailed, Actor: "ann", Action: "export tasks"},
	}
	for _, a := range all {
		if err := c.AppendAudit(c.Context(), a); err != nil {
			c.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		f    history.AuditFilter
		want []int64
	}{
		"all":      {history.AuditFilter{}, []int64{4, 3, 2, 1}},
		"kind":     {history.AuditFilter{Kind: history.AuditLogin}, []int64{3, 2}},
		"actions":  {history.AuditFilter{Kind: history.AuditAction}, []int64{1}},
		"refused":  {history.AuditFilter{Outcome: history.AuditRefused}, []int64{2}},
		"accepted": {history.AuditFilter{Outcome: history.AuditAccepted}, []int64{3, 1}},
		"actor":    {history.AuditFilter{Actor: "ann"}, []int64{4, 3, 1}},
		"action":   {history.AuditFilter{Action: "login"}, []int64{3, 2}},
		"time":     {history.AuditFilter{From: after(2), To: after(4)}, []int64{3, 2}},
		"both":     {history.AuditFilter{Actor: "ann", Kind: history.AuditLogin, Before: 4}, []int64{3}},
		"none":     {history.AuditFilter{Actor: "bob"}, nil},
	} {
		test.f.Limit = 2
		var got []int64
		for {
			list, next, err := c.AuditLog(c.Context(), test.f)
			if err != nil {
				c.Fatal(err)
			}
			for _, a := range list {
				got = append(got, a.ID)
			}
			if test.f.Before = next; next == 0 {
				break
			}
		}
		if !slices.Equal(got, test.want) {
			c.Errorf("%s: records %v, want %v", name, got, test.want)
		}
	}
}

// auditBounded reads records that are long, of which one is longer than a page may be.
func (c storeTest) auditBounded() {
	const most = 4 << 20
	for _, size := range []int{1, 1 << 20, 1 << 20, 6 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20} {
		a := history.AuditRecord{At: startTime(), Action: "test", Detail: `"` + strings.Repeat("x", size) + `"`}
		if _, _, err := c.Enqueue(c.Context(), history.CommandRequest{Commands: []history.Command{commandOf("a")}, Audit: a}); err != nil {
			c.Fatal(err)
		}
	}
	next, wanted := int64(0), int64(9)
	for pages := 0; ; pages++ {
		list, after, err := c.AuditLog(c.Context(), history.AuditFilter{Before: next, Limit: 100})
		if err != nil || len(list) == 0 || pages > 9 {
			c.Fatalf("page %d has %d records, error %v", pages, len(list), err)
		}
		size := 0
		for _, a := range list {
			if a.ID != wanted {
				c.Errorf("record %d came, want %d", a.ID, wanted)
			}
			wanted--
			size += len(a.Detail)
		}
		if size > most && len(list) > 1 {
			c.Errorf("page %d has %d records of %d bytes, want at most %d", pages, len(list), size, most)
		}
		if next = after; next == 0 {
			break
		}
	}
	if wanted != 0 {
		c.Errorf("records up to %d did not come", wanted)
	}
	if bad, err := c.VerifyAudit(c.Context()); bad != 0 || err != nil {
		c.Errorf("record %d is bad, error %v", bad, err)
	}
}

func (c storeTest) pruneCommands(history.RetentionRules) {
	list := c.dead() // three of them final after 2 s
	many := make([]history.Command, 300)
	for i := range many {
		many[i] = commandOf("many")
		many[i].Expected = []string{"w1"}
	}
	others := ids(c.enqueue(many...))
	if n, err := c.Discard(c.Context(), others, after(100), history.AuditRecord{At: after(100)}); n != len(others) || err != nil {
		c.Fatalf("discarded %d of %d: %v", n, len(others), err)
	}
	for _, step := range []struct {
		now        time.Time
		left, dead int
	}{
		{after(3602), 304, 3},
		{after(3603), 301, 0},
		{after(3700), 301, 0},
		{after(3701), 1, 0},
		{after(1 << 20), 1, 0},
	} {
		if err := c.Prune(c.Context(), step.now, func(history.Pruned) {}); err != nil {
			c.Fatalf("prune: %v", err)
		}
		left, stats := c.list(history.CommandFilter{Limit: 500}), c.stats()
		if len(left) != step.left || stats.DeadLetters != step.dead {
			c.Errorf("at %v %d commands are left, %+v, want %d with %d dead letters", step.now, len(left), stats, step.left, step.dead)
		}
	}
	if left := c.list(history.CommandFilter{Limit: 500, Worker: "w1"}); len(left) > 0 {
		c.Errorf("%d commands are left of a worker", len(left))
	}
	c.expectStates(list[3:], history.CommandPending)
	if bad, err := c.VerifyAudit(c.Context()); bad != 0 || err != nil {
		c.Errorf("audit record %d is not as it was: %v", bad, err)
	}
}
