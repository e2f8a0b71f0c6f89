package state_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/history"
	"github.com/umbelhq/umbel/state"
)

func TestSnapshotRestoresEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		want := fold(t, state.Causal, history.New(seed, wild()).Events)
		var b bytes.Buffer
		if err := want.Snapshot(&b); err != nil {
			t.Fatal(err)
		}
		got := state.New(state.Options{})
		if err := got.Restore(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
			t.Fatalf("seed %d: tasks (-want +restored):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Workers(), got.Workers()); diff != "" {
			t.Fatalf("seed %d: workers (-want +restored):\n%s", seed, diff)
		}
		if want.Clock() != got.Clock() {
			t.Fatalf("seed %d: receiver clock %d restored as %d", seed, want.Clock(), got.Clock())
		}
	}
}

func TestRestoreRefusesWhatIsNoSnapshot(t *testing.T) {
	t.Parallel()
	if err := state.New(state.Options{}).Restore(strings.NewReader("no snapshot")); err == nil {
		t.Error("restored from text")
	}
}
