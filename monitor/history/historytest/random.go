package historytest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// asked is when queries are asked.
func requestTime() time.Time { return time.UnixMicro(1_790_000_600_000_000) }

// Fill writes about n tasks of random events and returns them as saved events tell of them.
func Fill(t *testing.T, s history.Store, seed uint64, n int) []state.Task {
	t.Helper()
	d := random{rand.New(rand.NewPCG(seed, 1))}
	c := state.New(state.Options{Track: true})
	for i := range n * 4 {
		c.Apply(d.event(n, i))
	}
	for i := range n {
		why := pick(d, []state.Reason{state.ReasonOrphaned, state.ReasonNotRunning, state.ReasonDismissed, "", ""})
		if id := d.id(n); why != "" {
			c.Conclude(id, state.Conclusion{Reason: why, Evidence: d.text(), At: requestTime().UnixMicro() - int64(i)})
		}
	}
	var b history.Batch
	var tasks []state.Task
	var reader state.Reader
	for _, u := range c.TakeUnsaved(c.Unsaved()) {
		b.Tasks = append(b.Tasks, history.Task{View: u.View, Events: u.Events})
		task, err := reader.Task(u.View.ID, u.Events)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	if _, err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	markDuplicates(tasks)
	return tasks
}

// random draws random things.
type random struct{ *rand.Rand }

func (d random) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d random, from []T) T { return from[d.IntN(len(from))] }

// words are what texts are made of.
func words() []string {
	return []string{
		"order", "Ärger", "ÄRGER", "4711", `"quoted"`, "a\x00b", "x", "日本語テキスト", "İstanbul", "100%", "Kelvin K", "it's",
	}
}

func names() []string {
	return []string{"shop.pay", "shop.ship", "mail.send", "Mail.Send", "", "[x]?*", "ünï"}
}
func nodes() []string    { return []string{"celery@a", "celery@b", "gen1@web"} }
func routes() []string   { return []string{"", "default", "high*", "q_1%"} }
func instants() []string { return []string{"2026-09-21T10:13:20+00:00", "2026-09-21T14:00:00", "soon"} }

// id returns one of n ids, of all kinds.
func (d random) id(n int) string {
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

func (d random) text() string {
	parts := make([]string, 1+d.IntN(3))
	for i := range parts {
		parts[i] = pick(d, words())
	}
	return strings.Join(parts, " ")
}

// arguments returns reprs that are complete.
func (d random) arguments() (args, kwargs string) {
	return pick(d, []string{"()", "(1,)", "[1]"}), pick(d, []string{"{}", "{'a': 1}"})
}

// event returns the i-th event. Clocks rise in each process, and are equal in different ones.
func (d random) event(tasks, i int) *state.Event {
	e := &state.Event{
		Kind: state.Kind(1 + d.IntN(int(state.TaskCustom))), Subject: "Progress", ID: d.id(tasks),
		Hostname: nodes()[i%3], PID: 7, Clock: int64(1 + i/3),
		Micros: 1_790_000_000_000_000 + int64(d.IntN(8))*100_000_000, Name: pick(d, names()), Args: d.text(), Kwargs: d.text(),
		RootID: d.id(tasks), ParentID: d.id(tasks), Retries: int64(d.IntN(3)), ETA: pick(d, instants()), Expires: pick(d, instants()),
		Queue: pick(d, routes()), Exchange: pick(d, routes()), RoutingKey: pick(d, routes()), Result: d.text(), Runtime: float64(d.IntN(4)) / 2,
		Exception: d.text(), Traceback: d.text(),
	}
	if of := (random{rand.New(rand.NewPCG(uint64(len(e.ID)), uint64(e.ID[len(e.ID)-1])))}); of.oneIn(2) { // those of a task are equal
		e.Args, e.Kwargs = of.arguments()
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
	switch k {
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
func (d random) expr(depth int) query.Expr {
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

func (d random) term() query.Term {
	fields := append(query.Fields(), query.Any, query.Any, query.State, query.Name)
	t := query.Term{Field: pick(d, fields)}
	for range 1 + d.IntN(2) {
		t.Values = append(t.Values, d.value(t.Field))
	}
	return t
}

func (d random) value(f query.Field) query.Value {
	switch f.Type() {
	case query.Set:
		if f == query.Is {
			return query.Value{Match: query.Exact, Text: pick(d, query.IsValues())}
		}
		if f == query.Dup {
			return query.Value{Match: query.Exact, Text: d.dup()}
		}
		if f.Causal() {
			return query.Value{Match: query.Exact, Text: d.word(query.ID)}
		}
		if f == query.Cluster {
			return query.Value{Match: query.Exact, Text: d.word(query.Name)}
		}
		if f == query.Outbox {
			return query.Value{Match: query.Exact, Text: pick(d, query.OutboxValues())}
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

// dup returns a value of query.Dup.
func (d random) dup() string {
	if d.oneIn(2) {
		return pick(d, query.DupValues())
	}
	var t state.Task
	args, kwargs := d.arguments()
	t.Name, t.Args, t.Kwargs = new(pick(d, names())), &args, &kwargs
	if call := callOf(&t); call.Known() {
		return call.String()
	}
	return query.DupAny
}

func (d random) word(f query.Field) string {
	switch f {
	case query.ID, query.Root, query.Parent:
		return d.id(40)
	case query.Name:
		return pick(d, names())
	case query.Worker, query.Client:
		return pick(d, nodes())
	case query.Queue, query.Exchange, query.RoutingKey:
		return pick(d, routes())
	case query.Any:
		return pick(d, []string{d.text(), d.id(40), pick(d, names())})
	default:
		return d.text()
	}
}

func (d random) pattern(s string) string {
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
func cut(d random, s string) string {
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

func (d random) span(from, width int64) query.Value {
	bound := func() query.Bound {
		b := query.Bound{Set: !d.oneIn(3), Exclusive: d.oneIn(2), N: from + d.Int64N(width+1)}
		if from > 0 && d.oneIn(3) {
			b.Relative, b.N = true, b.N-requestTime().UnixMicro()
		}
		return b
	}
	v := query.Value{Match: query.Range, Min: bound(), Max: bound()}
	if v.Min.Set && v.Max.Set {
		v.Min.Exclusive, v.Max.Exclusive = false, false
	}
	return v
}
