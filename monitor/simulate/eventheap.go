package simulate

// entry is something that will happen: do is called, or out is delivered.
type entry struct {
	at  int64
	seq uint64
	do  func()
	out *Delivery
}

func (e *entry) before(f *entry) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// eventHeap is a binary heap of what will happen, soonest first, then in order of planning. It works like
// container/heap, without an allocation for each entry.
type eventHeap struct{ heap []entry }

func (a *eventHeap) empty() bool { return len(a.heap) == 0 }

func (a *eventHeap) push(e entry) {
	a.heap = append(a.heap, e)
	h, i := a.heap, len(a.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].before(&e) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (a *eventHeap) pop() entry {
	first, n := a.heap[0], len(a.heap)-1
	e := a.heap[n]
	a.heap[n] = entry{}
	a.heap = a.heap[:n]
	if n == 0 {
		return first
	}
	h, i := a.heap, 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h[child+1].before(&h[child]) {
			child++
		}
		if e.before(&h[child]) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
	return first
}
