package peers_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/peers"
)

// TestALeaderLeavesItsNote has a leader change its note, and end at once.
func TestALeaderLeavesItsNote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		one := start(t, b, "one")
		pass(1500 * time.Millisecond)
		two := start(t, b, "two")
		two.Note("of one that follows")
		one.Note("first")
		pass(3 * time.Second)
		one.Note("second")
		synctest.Wait() // no time passes
		if got := two.Noted(); got != "second" {
			t.Errorf("note %q before the next announcement, want the new one", got)
		}
		one.Note("first")
		synctest.Wait()
		if got := two.Noted(); got != "first" || one.Noted() != "" {
			t.Errorf("notes %q and %q, want that of the leader alone", got, one.Noted())
		}
		one.Note("last")
		one.stop()
		pass(time.Second)
		expectStates(t, "after the leader has stopped", []umbel{two}, peers.Leads)
		if got := two.Noted(); got != "last" {
			t.Errorf("note %q, want the one that it had when it stopped", got)
		}
		two.Note(strings.Repeat("x", peers.MaxNote+1))
		synctest.Wait()
		three := start(t, b, "three")
		pass(3 * time.Second)
		if got := three.Noted(); got != "" || three.Status().State != peers.Follows {
			t.Errorf("note of %d bytes, state %s", len(got), three.Status().State)
		}
	})
}
