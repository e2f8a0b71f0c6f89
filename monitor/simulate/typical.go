package simulate

// Typical returns n everyday events, task-received, task-started and task-succeeded of a few kinds of
// task on four workers, as bodies in order of arrival: objects if batch is at most 1, else arrays of
// batch events each. The same arguments give the same bodies. It is made for benchmarks, which want
// them quickly, with no particular sequence; a third of n tasks result, rounded up.
func Typical(n, batch int) [][]byte {
	const together = 8 // tasks that run at the same time on a worker
	d, shop := newRNG(1), kinds(defaultQueue, false)
	names := []string{"fraud.score", "mail.send_receipt", "search.index_product", "webhooks.deliver", "billing.charge_card"}
	h := &host{name: "web-1", utcoffset: "0.0", version: "5.7.0"}
	t := batcher{batch: max(batch, 1), left: n, now: 1_767_603_600e9}
	for block := 0; t.left > 0; block++ {
		w := block % 4
		p, node := &process{host: h, pid: int64(701 + w), clock: t.clocks[w]}, "celery@web-"+number(1+w)
		var ids [together]string
		var run [together]*kind
		for i := range ids {
			ids[i], run[i] = d.uuid(), shop[pick(d, names)]
			args, kwargs := run[i].call(d)
			t.add(newEvent(p, node).str("uuid", ids[i]).str("name", run[i].name).str("args", args).str("kwargs", kwargs).
				str("root_id", ids[i]).opt("parent_id", "").num("retries", 0).date("eta", 0).date("expires", 0), "task-received")
		}
		for _, id := range ids {
			t.add(newEvent(p, node).str("uuid", id), "task-started")
		}
		for i, id := range ids {
			t.add(newEvent(p, node).str("uuid", id).str("result", run[i].result(d)).
				float("runtime", d.logNormal(run[i].median, run[i].sigma).Seconds()), "task-succeeded")
		}
		t.clocks[w] = p.clock
	}
	t.flush()
	return t.bodies
}

// batcher writes events for Typical.
type batcher struct {
	batch, left int
	now         int64
	clocks      [4]int64
	bodies      [][]byte
	open        []byte // the array in the making
	size        int    // of its events
}

func (t *batcher) add(e event, kind string) {
	if t.left == 0 {
		return
	}
	t.left--
	t.now += 97_123
	body := e.end(t.now, kind)
	if t.batch == 1 {
		t.bodies = append(t.bodies, body)
		return
	}
	if t.size == 0 {
		t.open = append(t.open, '[')
	} else {
		t.open = append(t.open, ", "...)
	}
	t.open = append(t.open, body...)
	if t.size++; t.size == t.batch {
		t.flush()
	}
}

func (t *batcher) flush() {
	if t.size > 0 {
		t.bodies = append(t.bodies, append(t.open, ']'))
		t.open, t.size = nil, 0
	}
}
