package gossip_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
)

const sec = int64(1_000_000)

func heartbeat(worker string, pid, clock, at int64) *state.Event {
	return &state.Event{
		Kind: state.WorkerHeartbeat, Hostname: worker, PID: pid, Clock: clock, ReceivedMicros: at * sec,
		Present: state.FieldClock | state.FieldPID | state.FieldFreq,
	}
}

// TestWorkersOnIslands has a and b hear each other, and c nobody. From second 60 on, a does not hear b.
func TestWorkersOnIslands(t *testing.T) {
	t.Parallel()
	var d gossip.Detector
	clocks := map[string]int64{"a": 100, "b": 100, "c": 10}
	beat := func(worker string, at int64, hear ...string) {
		clocks[worker]++
		d.Add(heartbeat(worker, 7, clocks[worker], at))
		for _, h := range hear {
			clocks[h] = max(clocks[h], clocks[worker]) + 1
		}
	}
	for at := int64(0); at < 60; at += 2 {
		beat("a", at, "b")
		beat("b", at+1, "a")
		beat("c", at+1)
	}
	r := d.Report(60 * sec)
	if diff := cmp.Diff([][]string{{"a", "b"}}, r.Islands); diff != "" || r.Compared != 3 {
		t.Errorf("%+v, islands (-want +got):\n%s", r, diff)
	}
	if len(r.Deaf) != 2 || r.Deaf[0].Worker != "c" || r.Deaf[0].Speaker != "a" || r.Deaf[1].Speaker != "b" {
		t.Errorf("deaf: %+v, want c to a and b alone", r.Deaf)
	}
	for at := int64(60); at < 300; at += 2 {
		clocks["b"] += 40 // it runs tasks
		beat("a", at, "b")
		beat("b", at+1)
		beat("c", at+1)
		r = d.Report((at + 1) * sec)
	}
	if len(r.Islands) != 0 || len(r.Deaf) != 3 || r.Deaf[0].Worker != "a" || r.Deaf[0].Speaker != "b" {
		t.Fatalf("after the split: %+v", r)
	}
	if since := r.Deaf[0].Since; since < 59*sec || since > 63*sec || r.Deaf[0].Longer {
		t.Errorf("a is deaf since second %v, want 61", float64(since)/1e6)
	}
	d.Forget("b")
	if r = d.Report(300 * sec); len(r.Deaf) != 1 || r.Compared != 2 {
		t.Errorf("without b: %+v", r)
	}
	if r = d.Report(1_000 * sec); r.Compared != 0 || len(r.Deaf) != 0 {
		t.Errorf("when all are silent: %+v", r)
	}
}

// TestARestartIsNotDeafness has a worker begin anew with a low clock, under the same pid and without saying so.
func TestARestartIsNotDeafness(t *testing.T) {
	t.Parallel()
	var d gossip.Detector
	clock := int64(1_000)
	for at := int64(0); at < 30; at += 2 {
		clock += 5
		d.Add(heartbeat("a", 7, clock, at))
		d.Add(heartbeat("b", 7, clock+2, at+1))
	}
	for i, at := int64(0), int64(30); at < 44; i, at = i+1, at+2 { // it hears b late, and catches up
		clock += 5
		d.Add(heartbeat("b", 7, clock+2, at+1))
		low := 10 + i
		if i > 3 {
			low = clock
		}
		d.Add(heartbeat("a", 7, low, at))
		if r := d.Report((at + 1) * sec); len(r.Deaf) != 0 {
			t.Fatalf("second %d: %+v", at, r.Deaf)
		}
	}
}
