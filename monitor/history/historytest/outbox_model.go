package historytest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/history"
)

// model is what an outbox should hold.
type model struct {
	c     storeTest
	now   time.Time
	rows  map[int64]*row
	order []int64 // by ID
}

// row is what is known of a command.
type row struct {
	group        string
	foreign      bool
	state        history.CommandState
	due, expires time.Time // expires is zero for never
	claimed      time.Time
}

// commandsModelled compares an outbox with a model of it, whatever relays and crashes do.
func (c storeTest) commandsModelled() {
	now, stories, failed := startTime(), 0, false
	rapid.Check(c.T, func(t *rapid.T) {
		if stories++; stories > 15 && !failed && (c.Durable || !testenv.Thorough()) {
			return
		}
		ended := false
		defer func() { failed = failed || !ended }() // then it is repeated
		m := &model{c: c, now: now, rows: make(map[int64]*row)}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": m.enqueue,
			"claim":   m.claim,
			"settle":  m.settle,
			"crash":   m.crash,
			"reclaim": m.reclaim,
			"requeue": m.requeue,
			"discard": m.discard,
			"sum":     m.sum,
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
			},
			"": m.check,
		})
		m.clear(t)
		now, ended = m.now, true
	})
}

// fatal ends the check if there is an error.
func fatal(t *rapid.T, what string, err error) {
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (m *model) enqueue(t *rapid.T) {
	var commands []history.Command
	for range rapid.IntRange(1, 4).Draw(t, "commands") {
		x := commandOf(rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "group"))
		x.CreatedAt, x.DueAt = m.now, m.now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 30}).Draw(t, "due"))*time.Second)
		if rapid.Bool().Draw(t, "expires") {
			x.ExpiresAt = m.now.Add(60 * time.Second)
		}
		if rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
			x.Schema = history.CommandSchema + 1
		}
		commands = append(commands, x)
	}
	written, _, err := m.c.Enqueue(m.c.Context(), history.CommandRequest{Commands: commands, Audit: history.AuditRecord{At: m.now}})
	fatal(t, "enqueue", err)
	for i := range written {
		x := &written[i]
		m.rows[x.ID] = &row{
			group: x.Group, foreign: x.Schema != history.CommandSchema, state: history.CommandPending, due: x.DueAt, expires: x.ExpiresAt,
		}
		m.order = append(m.order, x.ID)
	}
}

// expire does what every claim does first.
func (m *model) expire() (n int) {
	for _, r := range m.rows {
		if r.state == history.CommandPending && !r.foreign && !r.expires.IsZero() && !r.expires.After(m.now) {
			r.state = history.CommandExpired
			n++
		}
	}
	return n
}

// ready returns the commands of each group that may be claimed.
func (m *model) ready() map[string][]int64 {
	groups := make(map[string][]int64)
	shut := make(map[string]bool)
	for _, r := range m.rows {
		if r.state == history.CommandInFlight {
			shut[r.group] = true
		}
	}
	for _, id := range m.order {
		r := m.rows[id]
		if r.state != history.CommandPending || r.foreign || shut[r.group] {
			continue
		}
		if r.due.After(m.now) {
			shut[r.group] = true
			continue
		}
		groups[r.group] = append(groups[r.group], id)
	}
	return groups
}

func (m *model) claim(t *rapid.T) {
	limit, each := rapid.IntRange(1, 12).Draw(t, "limit"), rapid.IntRange(1, 6).Draw(t, "each")
	expired := m.expire()
	ready := m.ready()
	claimed, err := m.c.Claim(m.c.Context(), self, m.now, limit, each)
	fatal(t, "claim", err)
	if claimed.Expired != expired || len(claimed.Commands) > limit {
		t.Fatalf("%d expired, want %d; %d claimed of %d at most", claimed.Expired, expired, len(claimed.Commands), limit)
	}
	got := make(map[string][]int64)
	for _, x := range claimed.Commands {
		r := m.rows[x.ID]
		r.state, r.claimed = history.CommandInFlight, m.now
		got[r.group] = append(got[r.group], x.ID)
	}
	for group, list := range got {
		if len(list) > each || len(list) > len(ready[group]) || !slices.Equal(list, ready[group][:len(list)]) {
			t.Fatalf("claimed %v of group %q, where %v were ready and %d at most wanted", list, group, ready[group], each)
		}
	}
	if len(got) < min(len(ready), limit) {
		t.Fatalf("%d groups claimed of %d that were ready, %d commands wanted", len(got), len(ready), limit)
	}
}

// some draws some of the commands in a state.
func (m *model) some(t *rapid.T, states ...history.CommandState) []int64 {
	var list []int64
	for _, id := range m.order {
		if slices.Contains(states, m.rows[id].state) && rapid.Bool().Draw(t, fmt.Sprintf("choose %d", id)) {
			list = append(list, id)
		}
	}
	return list
}

func (m *model) settle(t *rapid.T) {
	var outcomes []history.Outcome
	for _, id := range m.some(t, history.CommandInFlight) {
		r := m.rows[id]
		o := history.Outcome{ID: id, State: rapid.SampledFrom([]history.CommandState{
			history.CommandPending, history.CommandSent, history.CommandDone, history.CommandDead, history.CommandExpired,
		}).Draw(t, "state")}
		if r.state = o.State; o.State == history.CommandPending {
			o.DueAt = m.now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "due")) * time.Second)
			r.due = o.DueAt
		}
		outcomes = append(outcomes, o)
	}
	if others := m.some(t, history.CommandPending, history.CommandDone); len(others) > 0 { // of a relay that is late
		outcomes = append(outcomes, history.Outcome{ID: others[0], State: history.CommandDead})
	}
	fatal(t, "settle", m.c.RecordOutcomes(m.c.Context(), self, m.now, outcomes))
}

// crash closes the store and claims what was in flight anew.
func (m *model) crash(t *rapid.T) {
	m.c.reopen()
	m.put(t, m.now.Add(time.Hour), nil)
}

func (m *model) reclaim(t *rapid.T) {
	m.put(t, m.now.Add(-time.Minute), m.some(t, history.CommandInFlight))
}

func (m *model) put(t *rapid.T, before time.Time, held []int64) {
	want := 0
	for id, r := range m.rows {
		if r.state == history.CommandInFlight && r.claimed.Before(before) && !slices.Contains(held, id) {
			r.state = history.CommandPending
			want++
		}
	}
	n, err := m.c.Reclaim(m.c.Context(), self, m.now, before, held)
	fatal(t, "reclaim", err)
	if n.Pending != want {
		t.Fatalf("reclaimed %d, want %d", n.Pending, want)
	}
}

func (m *model) requeue(t *rapid.T) {
	list := m.some(t, history.CommandDead, history.CommandDone)
	want := 0
	for _, id := range list {
		if r := m.rows[id]; r.state == history.CommandDead {
			r.state, r.due, r.expires = history.CommandPending, m.now, time.Time{}
			want++
		}
	}
	n, err := m.c.Requeue(m.c.Context(), list, m.now, time.Time{}, history.AuditRecord{At: m.now})
	fatal(t, "requeue", err)
	if n != want {
		t.Fatalf("requeued %d, want %d", n, want)
	}
}

func (m *model) discard(t *rapid.T) {
	list := m.some(t, history.CommandDead, history.CommandPending, history.CommandInFlight)
	want := 0
	for _, id := range list {
		if r := m.rows[id]; r.state != history.CommandInFlight {
			r.state = history.CommandDiscarded
			want++
		}
	}
	n, err := m.c.Discard(m.c.Context(), list, m.now, history.AuditRecord{At: m.now})
	fatal(t, "discard", err)
	if n != want {
		t.Fatalf("discarded %d, want %d", n, want)
	}
}

// check compares every command with the model.
func (m *model) check(t *rapid.T) {
	want, got := make(map[int64]history.CommandState), make(map[int64]history.CommandState)
	for id, r := range m.rows {
		want[id] = r.state
	}
	for f := (history.CommandFilter{}); len(got) < len(m.order); {
		f.Limit = min(len(m.order)-len(got), 500)
		page, next, err := m.c.Commands(m.c.Context(), f)
		fatal(t, "list", err)
		for i := range page {
			got[page[i].ID] = page[i].State
		}
		if f.Before = next; next == 0 {
			break
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("commands (-want +got):\n%s", diff)
	}
}

// sum compares sums with the model.
func (m *model) sum(t *rapid.T) {
	stats, err := m.c.OutboxStats(m.c.Context())
	fatal(t, "sum up", err)
	open, foreign := 0, 0
	for _, r := range m.rows {
		if r.state == history.CommandPending || r.state == history.CommandInFlight {
			open++
		}
		if r.foreign && r.state == history.CommandPending {
			foreign++
		}
	}
	if n := stats.States[history.CommandPending] + stats.States[history.CommandInFlight]; n != open || stats.OtherSchema != foreign {
		t.Fatalf("%d are on their way, %d of them foreign, want %d and %d", n, stats.OtherSchema, open, foreign)
	}
}

// clear ends all commands, for the next check.
func (m *model) clear(t *rapid.T) {
	m.put(t, m.now.Add(time.Hour), nil)
	_, err := m.c.Discard(m.c.Context(), m.order, m.now, history.AuditRecord{At: m.now})
	fatal(t, "discard", err)
}
