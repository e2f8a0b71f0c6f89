package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
)

// TestOtherProcessesHearOfChanges has one process listen to what another writes.
func TestOtherProcessesHearOfChanges(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	other := d.Beside(t, address)
	defer closed(t, other)
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- other.Listen(ctx, func() { heard <- struct{}{} }) }()
	wait := func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not heard of", what)
		}
	}
	wait("the beginning")
	if _, err := d.SaveView(ctx, history.View{Name: "v"}); err != nil {
		t.Fatal(err)
	}
	wait("a view")
	if _, _, err := d.Enqueue(ctx, history.CommandRequest{Commands: []history.Command{{Kind: "task"}, {Kind: "task"}}}); err != nil {
		t.Fatal(err)
	}
	wait("a request")
	if _, err := d.Claim(ctx, "relay", time.Now(), 1, 1); err != nil {
		t.Fatal(err)
	}
	wait("a claim")
	cancel()
	if err := <-ended; err != nil || len(heard) > 0 {
		t.Errorf("error %v, heard %d times more", err, len(heard))
	}
}
