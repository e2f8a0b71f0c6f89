package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// now is when queries are asked.
var now = time.UnixMicro(1_790_000_600_000_000)

// Searching says how to check a Searcher.
type Searching struct {
	Open    func(*testing.T) store.Store  // an empty store
	Settle  func(*testing.T, store.Store) // does what the store puts off; may be nil
	Bounded bool                          // it gives up so early that counts may be too low
}

// Search checks a Searcher against a list of all tasks, filtered by query.Match and sorted, before and after it has
// settled.
func Search(t *testing.T, x Searching) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("random queries %d", seed), func(t *testing.T) {
			t.Parallel()
			s := x.Open(t)
			tasks := Fill(t, s, seed, 40+int(seed)*50)
			rng := rand.New(rand.NewPCG(seed, 2))
			x.all(t, s, tasks, rng)
			if x.Settle != nil {
				x.Settle(t, s)
				x.all(t, s, tasks, rng)
			}
		})
	}
}

func (x Searching) all(t *testing.T, s store.Store, tasks []state.Task, rng *rand.Rand) {
	t.Helper()
	d := dice{rng}
	for range 40 {
		r := store.Request{Query: query.New(d.expr(3)), Limit: 1 + rng.IntN(30), Now: now}
		if d.oneIn(2) {
			r.Sort = query.Sort{Field: pick(d, sortable), Ascending: d.oneIn(2)}
		}
		want := listed(tasks, r)
		if diff := gocmp.Diff(want, pages(t, s, r, false)); diff != "" {
			t.Fatalf("pages of %q by %+v, %d each, from the top (-want +got):\n%s", r.Query, r.Sort, r.Limit, diff)
		}
		slices.Reverse(want)
		if diff := gocmp.Diff(want, pages(t, s, r, true)); diff != "" {
			t.Fatalf("pages of %q by %+v, %d each, from the end (-want +got):\n%s", r.Query, r.Sort, r.Limit, diff)
		}
		r.Sort = query.Sort{}
		all := listed(tasks, r)
		limit := rng.IntN(40)
		count, err := s.Count(t.Context(), r.Query, now, limit)
		if err != nil {
			t.Fatal(err)
		}
		if want := (store.Count{N: min(len(all), limit), Exact: len(all) <= limit}); count != want &&
			(!x.Bounded || count.Exact || count.N > want.N) {
			t.Fatalf("count of %q up to %d = %+v, want %+v", r.Query, limit, count, want)
		}
	}
}

var sortable = []query.Field{
	query.Sent, query.Received, query.Started, query.Finished, query.Wait, query.Run, query.Retries,
}

// listed returns the ids of the tasks that match, in the order of the list.
func listed(tasks []state.Task, r store.Request) []string {
	type place struct {
		value int64
		task  *state.Task
	}
	var places []place
	for i := range tasks {
		p := place{task: &tasks[i]}
		known := true
		if r.Sort.Field != 0 {
			p.value, known = r.Sort.Field.Int(p.task)
		}
		if known && r.Query.Match(p.task, r.Now) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		c := cmp.Or(cmp.Compare(a.value, b.value), a.task.Stamp.Compare(b.task.Stamp), cmp.Compare(a.task.ID, b.task.ID))
		if r.Sort.Ascending {
			return c
		}
		return -c
	})
	ids := []string{}
	for _, p := range places {
		ids = append(ids, p.task.ID)
	}
	return ids
}

// pages walks all pages from the top, or from the end back to it, and returns the ids in the order seen.
func pages(t *testing.T, s store.Store, r store.Request, back bool) []string {
	t.Helper()
	ids := []string{}
	r.Newer = back
	for n := 0; ; n++ {
		if n > 2000 {
			t.Fatalf("pages of %q do not end", r.Query)
		}
		page, err := s.Tasks(t.Context(), r)
		if err != nil {
			t.Fatalf("page of %q: %v", r.Query, err)
		}
		if len(page.Tasks) > r.Limit {
			t.Fatalf("page of %d tasks, want at most %d", len(page.Tasks), r.Limit)
		}
		on := page.Next
		if back {
			slices.Reverse(page.Tasks)
			on = page.Prev
		}
		for _, task := range page.Tasks {
			ids = append(ids, task.ID)
		}
		if n > 0 && len(page.Tasks) > 0 {
			other := page.Prev
			if back {
				other = page.Next
			}
			if other == nil {
				t.Fatalf("page %d of %q has no way back", n, r.Query)
			}
		}
		if on == nil {
			return ids
		}
		r.From = on
	}
}

// Fill writes about n tasks of random events and returns them as saved events tell of them.
func Fill(t *testing.T, s store.Store, seed uint64, n int) []state.Task {
	t.Helper()
	d := dice{rand.New(rand.NewPCG(seed, 1))}
	c := state.New(state.Options{Track: true})
	for i := range n * 4 {
		c.Apply(d.event(n, i))
	}
	var b store.Batch
	var tasks []state.Task
	var reader state.Reader
	for _, u := range c.TakeUnsaved(c.Unsaved()) {
		b.Tasks = append(b.Tasks, store.Task{View: u.View, Events: u.Events})
		task, err := reader.View(u.View.ID, u.Events)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	if _, err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return tasks
}

// dice draws random things.
type dice struct{ *rand.Rand }

func (d dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, from []T) T { return from[d.IntN(len(from))] }

var (
	names   = []string{"shop.pay", "shop.ship", "mail.send", "Mail.Send", "", "[x]?*", "ünï"}
	nodes   = []string{"celery@a", "celery@b", "gen1@web"}
	routes  = []string{"", "default", "high*", "q_1%"}
	words   = []string{"order", "Ärger", "ÄRGER", "4711", `"quoted"`, "a\x00b", "x", "日本語テキスト", "İstanbul", "100%", "Kelvin K", "it's"}
	instant = []string{"2026-09-21T10:13:20+00:00", "2026-09-21T14:00:00", "soon"}
)

// id returns one of n ids, of all kinds.
func (d dice) id(n int) string {
	i := d.IntN(n)
	switch i % 8 {
	case 0:
		return fmt.Sprintf("task-%d", i)
	case 1:
		return fmt.Sprintf("%08X-0000-4000-8000-000000000000", i) // upper case is another id
	case 2:
		return fmt.Sprintf("Kilo İd\x00 %d", i)
	default:
		return fmt.Sprintf("%04x%04x-0000-4000-8000-%012x", i*977%65536, i, i)
	}
}

func (d dice) text() string {
	parts := make([]string, 1+d.IntN(3))
	for i := range parts {
		parts[i] = pick(d, words)
	}
	return strings.Join(parts, " ")
}

// event returns the i-th event. Clocks rise in each process, and are equal in different ones.
func (d dice) event(tasks, i int) *state.Event {
	e := &state.Event{
		Kind: state.Kind(1 + d.IntN(int(state.TaskCustom))), Subject: "Progress", ID: d.id(tasks),
		Hostname: nodes[i%len(nodes)], PID: 7, Clock: int64(1 + i/len(nodes)),
		Micros: 1_790_000_000_000_000 + int64(d.IntN(8))*100_000_000, Name: pick(d, names), Args: d.text(), Kwargs: d.text(),
		RootID: d.id(tasks), ParentID: d.id(tasks), Retries: int64(d.IntN(3)), ETA: pick(d, instant), Expires: pick(d, instant),
		Queue: pick(d, routes), Exchange: pick(d, routes), RoutingKey: pick(d, routes), Result: d.text(), Runtime: float64(d.IntN(4)) / 2,
		Exception: d.text(), Traceback: d.text(),
	}
	e.ReceivedMicros = e.Micros
	e.Present = state.FieldClock | state.FieldPID | state.FieldTimestamp | carried(e.Kind)&state.Fields(d.IntN(1<<16))
	if !e.Has(state.FieldRetries) {
		e.Retries = 0
	}
	for f, v := range map[state.Fields]*string{
		state.FieldName: &e.Name, state.FieldQueue: &e.Queue, state.FieldExchange: &e.Exchange, state.FieldRoutingKey: &e.RoutingKey,
	} {
		if !e.Has(f) {
			*v = ""
		}
	}
	return e
}

// carried are the fields that Celery sends with a kind of event.
func carried(k state.Kind) state.Fields {
	switch k { //nolint:exhaustive // others carry none
	case state.TaskSent, state.TaskReceived:
		return state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldParentID | state.FieldRetries |
			state.FieldETA | state.FieldExpires | state.FieldQueue | state.FieldExchange | state.FieldRoutingKey
	case state.TaskSucceeded:
		return state.FieldResult | state.FieldRuntime
	case state.TaskFailed, state.TaskRetried:
		return state.FieldException | state.FieldTraceback
	default:
		return 0
	}
}

// expr returns an expression of at most a depth.
func (d dice) expr(depth int) query.Expr {
	if depth == 0 || d.oneIn(3) {
		return d.term()
	}
	switch d.IntN(4) {
	case 0:
		return query.Not{X: d.expr(depth - 1)}
	case 1:
		return query.Or{d.expr(depth - 1), d.expr(depth - 1)}
	default:
		and := make(query.And, d.IntN(4))
		for i := range and {
			and[i] = d.expr(depth - 1)
		}
		return and
	}
}

func (d dice) term() query.Term {
	fields := append(query.Fields(), query.Any, query.Any, query.State, query.Name)
	t := query.Term{Field: pick(d, fields)}
	for range 1 + d.IntN(2) {
		t.Values = append(t.Values, d.value(t.Field))
	}
	return t
}

func (d dice) value(f query.Field) query.Value {
	switch f.Type() {
	case query.Set:
		if f == query.Is {
			return query.Value{Match: query.Exact, Text: pick(d, query.IsValues())}
		}
		return query.Value{Match: query.Exact, Text: strings.ToUpper(string(pick(d, append(state.States(), "PROGRESS", "NONE"))))}
	case query.Word:
		v := query.Value{Match: query.Exact, Text: d.word(f)}
		switch d.IntN(4) {
		case 0:
			v.Match, v.Text = query.Pattern, d.pattern(v.Text)
		case 1:
			v.Match, v.Text = query.Contains, cut(d, v.Text)
		}
		return v
	case query.Text:
		v := query.Value{Match: query.Contains, Text: cut(d, cmp.Or(d.word(f), "x"))}
		if d.oneIn(4) {
			v.Match, v.Text = query.Pattern, d.pattern(v.Text)
		}
		return v
	case query.Time:
		return d.span(1_790_000_000_000_000, 800_000_000)
	case query.Duration:
		return d.span(0, 2_000_000)
	default:
		return d.span(0, 40)
	}
}

func (d dice) word(f query.Field) string {
	switch f { //nolint:exhaustive // others are texts
	case query.ID, query.Root, query.Parent:
		return d.id(40)
	case query.Name:
		return pick(d, names)
	case query.Worker, query.Client:
		return pick(d, nodes)
	case query.Queue, query.Exchange, query.RoutingKey:
		return pick(d, routes)
	case query.Any:
		return pick(d, []string{d.text(), d.id(40), pick(d, names)})
	default:
		return d.text()
	}
}

func (d dice) pattern(s string) string {
	switch d.IntN(4) {
	case 0:
		return "*"
	case 1:
		return cut(d, s) + "*"
	case 2:
		return "*" + cut(d, s)
	default:
		return cut(d, s) + "*" + cut(d, s)
	}
}

// cut returns a part of s, in any case.
func cut(d dice, s string) string {
	runes := []rune(s)
	if len(runes) == 0 {
		return s
	}
	from := d.IntN(len(runes))
	s = string(runes[from : from+1+d.IntN(len(runes)-from)])
	switch d.IntN(4) {
	case 0:
		return strings.ToUpper(s)
	case 1:
		return strings.ToLower(s)
	default:
		return s
	}
}

func (d dice) span(from, width int64) query.Value {
	bound := func() query.Bound {
		b := query.Bound{Set: !d.oneIn(3), Exclusive: d.oneIn(2), N: from + d.Int64N(width+1)}
		if from > 0 && d.oneIn(3) {
			b.Relative, b.N = true, b.N-now.UnixMicro()
		}
		return b
	}
	v := query.Value{Match: query.Range, Min: bound(), Max: bound()}
	if v.Min.Set && v.Max.Set {
		v.Min.Exclusive, v.Max.Exclusive = false, false
	}
	return v
}
