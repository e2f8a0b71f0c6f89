package main_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// maxTakeOver is how long it may take after a fault of the leader until another node has the lease: that ends after 5 s.
const maxTakeOver = 6 * time.Second

// A fault happens to a leader, and is over when it returns.
type fault struct {
	name string
	do   func(n *nodes, leader string)
}

var (
	killed      = fault{"killed", (*nodes).kill}
	restarted   = fault{"killed and started at once", (*nodes).restart}
	paused      = fault{"stopped for longer than its lease", (*nodes).pause}
	cutOff      = fault{"connections to the database broken", (*nodes).cut}
	unheard     = fault{"cut from the broker", (*nodes).cutFromBroker}
	isolated    = fault{"cut from the database", (*nodes).cutFromDatabase}
	left        = fault{"stopped in order", (*nodes).leave}
	noDatabase  = fault{"PostgreSQL killed and started", (*nodes).restartDatabase}
	everyFault  = []fault{killed, restarted, paused, cutOff, unheard, isolated, left, noDatabase}
	usualFaults = []fault{killed, paused, cutOff, unheard, noDatabase, killed, left}
	fewFaults   = []fault{killed, unheard, cutOff, paused}
)

// TestNodesTakeOver has three Umbels share a history, and while events come does to the leader what can happen to one. Then every task
// and every cell of the counts must be as in truth, on each node. make thorough also tries random schedules of faults.
func TestNodesTakeOver(t *testing.T) {
	t.Parallel()
	if testenv.Thorough() {
		endureAtRandom(t)
	}
	for name, faults := range map[string][]fault{"RabbitMQ": usualFaults, "Redis": fewFaults} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endure(t, brokers[name](t), 5, faults)
		})
	}
}

// endureAtRandom does the same with random schedules of faults, one after the other: each has four processes.
func endureAtRandom(t *testing.T) {
	t.Helper()
	for seed := range uint64(4) {
		for name, broker := range brokers {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				faults := make([]fault, 20)
				for i := range faults {
					faults[i] = everyFault[random.IntN(len(everyFault))]
				}
				endure(t, broker(t), seed, faults)
			})
		}
	}
}

// endure has three nodes hear simulated events, and each fault happen to who leads then.
func endure(t *testing.T, broker string, seed uint64, faults []fault) {
	t.Helper()
	simulated, err := simulate.New(simulate.Options{
		Seed: seed, Rate: 30, Start: time.Now().Add(-time.Hour), Length: 2 * time.Minute, Truth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := newNodes(t, broker)
	for d, ok := simulated.Next(); ok; d, ok = simulated.Next() {
		n.bodies = append(n.bodies, d.Body)
	}
	for _, name := range []string{"a", "b", "c"} {
		n.start(name)
	}
	n.watchTakeOvers()
	for i, fault := range faults {
		part := n.bodies[i*len(n.bodies)/len(faults) : (i+1)*len(n.bodies)/len(faults)]
		var publishing sync.WaitGroup
		publishing.Go(func() {
			for _, body := range part {
				if err := n.bus.publish(t.Context(), routingKeyOf(body), body); err != nil {
					t.Errorf("publish: %v", err)
					return
				}
			}
		})
		<-time.After(300 * time.Millisecond)
		leader := n.leader()
		t.Logf("%s, which leads: %s", leader, fault.name)
		fault.do(n, leader)
		publishing.Wait()
	}
	n.compare(simulated.Truth())
}

// kill kills the leader, and starts it again once another one leads.
func (n *nodes) kill(leader string) {
	n.t.Helper()
	from := n.now()
	n.nodes[leader].end(n.t, syscall.SIGKILL)
	n.takenOver(leader, from)
	n.start(leader)
}

// restart kills the leader and starts it at once.
func (n *nodes) restart(leader string) {
	from := n.now()
	n.nodes[leader].end(n.t, syscall.SIGKILL)
	n.start(leader)
	n.taken("", from) // how late this process was is not known
}

// leave stops the leader in order.
func (n *nodes) leave(leader string) {
	from := n.now()
	if status := n.nodes[leader].end(n.t, syscall.SIGTERM); status != 0 {
		n.t.Errorf("stopped with status %d, want 0", status)
	}
	stopping := n.now().Sub(from) // which takes what it takes to write everything, and ends the lease
	if took, late := n.taken(leader, from); took > stopping+maxTakeOver+4*late {
		n.t.Errorf("taken over after %v, %v of them to stop, want at most %v more", took, stopping, maxTakeOver)
	}
	n.start(leader)
}

// pause stops the leader until another one leads, and for 8 s. It must not write when it goes on.
func (n *nodes) pause(leader string) {
	rest, from, d := time.After(8*time.Second), n.now(), n.nodes[leader]
	before := d.count("another node leads, or may")
	d.signal(syscall.SIGSTOP)
	n.takenOver(leader, from)
	<-rest
	d.signal(syscall.SIGCONT)
	eventually(n.t, timeout, func() error {
		if d.count("another node leads, or may") == before {
			return fmt.Errorf("%s has not noticed that it no longer leads", leader)
		}
		return nil
	})
}

// cut breaks the connections of the leader to the database, which it opens again.
func (n *nodes) cut(leader string) {
	testpostgres.Execute(n.t, n.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '"+application(leader)+"'")
}

// cutFromBroker has the leader hear nothing until another one leads.
func (n *nodes) cutFromBroker(leader string) {
	from := n.now()
	n.toBroker[leader].cut()
	n.takenOver(leader, from)
	n.toBroker[leader].restore(n.t)
	n.nodes[leader].connected(n.t)
}

// cutFromDatabase has the leader neither read nor write until another one leads.
func (n *nodes) cutFromDatabase(leader string) {
	from := n.now()
	n.toDatabase[leader].cut()
	n.takenOver(leader, from)
	n.toDatabase[leader].restore(n.t)
}

// restartDatabase kills PostgreSQL and starts it again.
func (n *nodes) restartDatabase(string) {
	n.server.Stop()
	<-time.After(time.Second)
	n.server.Start()
}
