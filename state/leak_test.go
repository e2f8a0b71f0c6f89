package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// These tests look inside: what an evicted task leaves behind shows nowhere else.

// audit reports what the cluster's tables hold that its tasks do not explain.
func audit(t *testing.T, c *Cluster) {
	t.Helper()
	var records, packs, relations, children, foreigners int
	uses := map[string]map[uint32]int{"lane": {}, "host": {}, "call": {}}
	for i := range c.index.all() {
		r := c.rows.at(i)
		uses["host"][r.worker]++
		uses["lane"][r.origin]++
		n := 0
		w := c.walk(r)
		for rec := w.next(); rec != nil; rec = w.next() {
			uses["lane"][rec.process]++
			uses["call"][rec.route]++
			n++
		}
		if r.packed {
			packs++
		} else {
			records += n
		}
		if n != int(r.count) || r.count > maxRecords {
			t.Errorf("row of %s counts %d records, its chain has %d", c.id(r), r.count, n)
		}
		if r.relation != 0 {
			relations++
		}
		if r.flags&hashedID != 0 {
			foreigners++
		}
		if uses["lane"][r.process] == 0 && r.process != 0 || uses["call"][r.name] == 0 && r.name != 0 || uses["call"][r.sent] == 0 && r.sent != 0 {
			t.Errorf("row of %s shows what none of its records has: %+v", c.id(r), r.summary)
		}
	}
	for _, refs := range []struct {
		what string
		used map[uint32]int
		refs func(uint32) int32
	}{
		{"lane", uses["lane"], func(n uint32) int32 { return c.processes.items[n].refs }},
		{"host", uses["host"], func(n uint32) int32 { return c.hosts.items[n].refs }},
		{"call", uses["call"], func(n uint32) int32 { return c.routes.items[n].refs }},
	} {
		for n, used := range refs.used {
			if n > other && int(refs.refs(n)) != used {
				t.Errorf("%s %d is counted %d times and used %d times", refs.what, n, refs.refs(n), used)
			}
		}
	}
	for n := range c.families {
		for k := c.families[n]; k != 0; k = c.relations.at(k).next {
			children++
			if rel := c.relations.at(k); rel.parent != n || c.rows.at(rel.row).relation != k {
				t.Errorf("family %x lists a relation of another", n)
			}
		}
	}
	inOrder := 0
	var last *listItem
	c.byStamp.oldest(0, 0, func(entries []listItem) bool {
		for i := range entries {
			e := entries[i]
			if r := c.rows.at(e.row); e != c.itemOf(e.row, r) || c.find(r.id) != e.row || c.index.find(r.id) != e.row {
				t.Errorf("the order has %+v, the row is %+v", e, r)
			}
			if last != nil && !c.byStamp.before(*last, e) {
				t.Errorf("the order has %+v before %+v", *last, e)
			}
			last = &e
			inOrder++
		}
		return true
	})
	for what, n := range map[string][2]int{
		"lanes": {len(c.processes.numbers), distinct(uses["lane"])},
		"hosts": {len(c.hosts.numbers), distinct(uses["host"])}, "calls": {len(c.routes.numbers), distinct(uses["call"])},
		"rows": {c.rows.used, c.index.len()}, "records": {c.records.used, records}, "packs": {c.packs.used(), packs},
		"relations": {c.relations.used, relations}, "order": {inOrder, c.index.len()}, "order size": {c.byStamp.size, c.index.len()},
		"foreign ids": {len(c.hashedIDs), foreigners},
	} {
		if n[0] != n[1] {
			t.Errorf("%d %s are held, %d in use", n[0], what, n[1])
		}
	}
	if children > relations {
		t.Errorf("%d children listed of %d relations", children, relations)
	}
	recount := tally{}
	for i := range c.index.all() {
		recount.add(c.rows.at(i))
	}
	for what, counts := range map[string][2][]int32{
		"states": {c.tally.states, recount.states}, "names": {c.tally.names, recount.names}, "queues": {c.tally.queues, recount.queues},
		"workers": {c.tally.workers, recount.workers}, "running": {c.tally.running, recount.running},
	} {
		for i, n := range counts[0] {
			if want := at(counts[1], i); n != want {
				t.Errorf("%s[%d] is tallied %d, recounted %d", what, i, n, want)
			}
		}
	}
}

func (p *packs) used() (n int) {
	for i := range p {
		n += p[i].used
	}
	return n
}

func distinct(uses map[uint32]int) (n int) {
	for k := range uses {
		if k > other {
			n++
		}
	}
	return n
}

func at(counts []int32, i int) int32 {
	if i < len(counts) {
		return counts[i]
	}
	return 0
}

// random is an event of one of n tasks, workers and names, with ids that are no UUIDs or differ only in case.
func random(rng *rand.Rand, n int, second float64) Event {
	id := func() string {
		switch k := rng.IntN(n); k % 4 {
		case 0:
			return fmt.Sprintf("6f61c0de-0000-4000-a000-%012X", 0xabc000+k)
		case 1:
			return fmt.Sprintf("6f61c0de-0000-4000-a000-%012x", 0xabc000+k-1)
		default:
			return fmt.Sprint("task ", k)
		}
	}
	host := rng.IntN(n)
	e := Event{
		Kind: TaskSent + Kind(rng.IntN(int(TaskCustom))), ID: id(), Subject: fmt.Sprint("step-", rng.IntN(n)),
		Hostname: fmt.Sprint("w", host), PID: int64(rng.IntN(3)), Clock: rng.Int64N(1000), Micros: 1_790_000_000_000_000 + int64(second*1e6),
		Name: fmt.Sprint("n", rng.IntN(n)), Queue: fmt.Sprint("q", rng.IntN(n)), Retries: int64(rng.IntN(4)), Retimed: rng.IntN(20) == 0,
		ParentID: id(), RootID: id(), Args: fmt.Sprint(rng.IntN(n)),
	}
	e.Present = Fields(rng.Uint32()) & (FieldName | FieldQueue | FieldRetries | FieldParentID | FieldRootID | FieldArgs | FieldClock)
	if rng.IntN(20) == 0 {
		e.Clock = 1 << 62
	}
	e.ReceivedMicros = e.Micros
	return e
}

func TestTablesHoldWhatTasksUse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		variety int
		shrink  bool // tables hold little
	}{
		"roomy":             {Options{}, 30, false},
		"celery rules":      {Options{Rules: Celery}, 30, false},
		"evicting":          {Options{MaxTasks: 20}, 100, false},
		"evicting, celery":  {Options{MaxTasks: 20, Rules: Celery}, 100, false},
		"one task":          {Options{MaxTasks: 1}, 10, false},
		"full tables":       {Options{MaxTasks: 50}, 60, true},
		"few tasks, events": {Options{}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				rng := rand.New(rand.NewPCG(seed, 17))
				c := New(tc.options)
				if tc.shrink {
					c.processes.limit, c.hosts.limit, c.routes.limit = 10, 5, 10
				}
				for i := range 600 {
					e := random(rng, tc.variety, float64(i))
					c.Apply(&e)
					if i%100 == 99 {
						audit(t, c)
					}
				}
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

func TestEvictedTasksLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, rules := range []Rules{Causal, Celery} {
		rng := rand.New(rand.NewPCG(1, 17))
		c := New(Options{Rules: rules})
		for i := range 3000 {
			e := random(rng, 100, float64(i))
			c.Apply(&e)
		}
		audit(t, c)
		for _, i := range slices.Collect(c.index.all()) {
			c.drop(i)
		}
		audit(t, c)
		if c.index.len()+len(c.hashedIDs)+len(c.families)+c.byStamp.size != 0 || len(c.byStamp.chunks) > 1 {
			t.Errorf("%d tasks, %d foreign ids, %d families, %d places are left", c.index.len(), len(c.hashedIDs), len(c.families), c.byStamp.size)
		}
	}
}

// TestNamesBeyondTheBoundAreOne has workers, some of them by the lane that was full, some by the table of hosts.
func TestNamesBeyondTheBoundAreOne(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	c.processes.limit, c.hosts.limit = 3, 2
	for i := range 6 {
		c.Apply(&Event{Kind: TaskReceived, ID: fmt.Sprint("t", i), Hostname: fmt.Sprint("w", i), PID: 1, Clock: 1, Micros: int64(i + 1)})
	}
	counted := c.Counts().ByWorker[otherKey]
	if page := c.Tasks(Query{Workers: []string{otherKey}}); counted != 4 || len(page.Tasks) != counted || *page.Total != counted {
		t.Errorf("%d tasks counted under %s, %d found, want 4", counted, otherKey, len(page.Tasks))
	}
	for id := range 6 { // room again
		c.drop(c.find(digest(fmt.Sprint("t", id))))
	}
	c.Apply(&Event{Kind: TaskReceived, ID: "new", Hostname: "new", PID: 1, Clock: 1, Micros: 9})
	if task, _ := c.Task("new"); *task.Worker != "new" {
		t.Errorf("worker %s after room was made, want its name", *task.Worker)
	}
	audit(t, c)
}

// choices is random numbers that a fuzzer chooses, and after those a sequence.
type choices struct {
	left []byte
	past uint64
}

func (c *choices) Uint64() uint64 {
	if len(c.left) == 0 {
		c.past += 0x9e3779b97f4a7c15
		return c.past
	}
	b := c.left[0]
	c.left = c.left[1:]
	return uint64(b) * 0x0101010101010101
}

// FuzzTables applies events to two small clusters, merges, saves and restores them.
func FuzzTables(f *testing.F) {
	rng := rand.NewChaCha8([32]byte{})
	for range 3 {
		seed := make([]byte, 400)
		_, _ = rng.Read(seed)
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := &choices{left: data}
		rng := rand.New(source)
		o := Options{MaxTasks: 1 + rng.IntN(10), MaxText: 1, Rules: Rules(rng.IntN(2)), Track: true}
		clusters := []*Cluster{New(o), New(o)}
		for _, c := range clusters {
			c.processes.limit, c.hosts.limit, c.routes.limit = 2+rng.IntN(8), 2+rng.IntN(8), 2+rng.IntN(8)
		}
		for second := 0.0; len(source.left) > 0; second++ {
			c := clusters[rng.IntN(2)]
			switch rng.IntN(32) {
			case 0:
				c.Expire(int64(rng.IntN(1 << 50)))
			case 1:
				other := clusters[rng.IntN(2)]
				for _, u := range c.TakeUnsaved(rng.IntN(4)) {
					if err := other.Load(u.View.ID, u.Events); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.Saved(rng.IntN(2) == 0, nil); err != nil {
					t.Fatal(err)
				}
			default:
				e := random(rng, 12, second)
				if rng.IntN(4) == 0 {
					e.Kind = WorkerOnline + Kind(rng.IntN(4))
				}
				c.Apply(&e)
			}
		}
		for _, c := range clusters {
			audit(t, c)
			read(c)
		}
	})
}

// read calls everything that readers call.
func read(c *Cluster) {
	c.Counts()
	c.Names()
	c.Workers()
	for page := c.Tasks(Query{Limit: 3}); ; page = c.Tasks(Query{Limit: 3, From: page.Older, Text: "task"}) {
		for _, task := range page.Tasks {
			c.TaskEvents(task.ID)
		}
		if page.Older == nil {
			return
		}
	}
}
