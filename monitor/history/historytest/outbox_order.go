package historytest

import (
	"errors"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func (c storeTest) requestsSummarized() {
	refused := commandOf("c")
	refused.Expected = []string{"w1", "w2"}
	first, other := ids(c.enqueue(commandOf("a"), commandOf("b"), refused)), ids(c.enqueue(commandOf("d")))
	c.claim(after(1), 3, 1)
	c.settle(after(2), history.Outcome{ID: first[0], State: history.CommandDead, Error: "refused"},
		history.Outcome{ID: first[2], State: history.CommandSent, Expected: refused.Expected})
	err := c.AddReplies(c.Context(), after(3), []history.CommandReplies{
		{ID: first[2], State: history.CommandDone, Replies: []history.Reply{{Node: "w1", OK: true}, {Node: "w2", Text: "no"}}},
	})
	if err != nil {
		c.Fatal(err)
	}
	for id, want := range map[int64]map[history.CommandState]int{
		first[0]: {history.CommandDead: 1, history.CommandInFlight: 1, history.CommandDone: 1},
		other[0]: {history.CommandPending: 1},
	} {
		got, err := c.Request(c.Context(), id)
		if err != nil {
			c.Fatalf("request %d: %v", id, err)
		}
		if diff := cmp.Diff(want, got.States); diff != "" {
			c.Errorf("states of request %d (-want +got):\n%s", id, diff)
		}
		if refused := len(want) / 3; got.Refused != refused || got.First.ID != id || got.Mixed {
			c.Errorf("request %d: refused %d, first %d, mixed %v, want %d, %[1]d, false", id, got.Refused, got.First.ID, got.Mixed, refused)
		}
	}
	if _, err := c.Request(c.Context(), first[1]); !errors.Is(err, history.ErrNotFound) {
		c.Errorf("request of a command that is not the first: %v, want ErrNotFound", err)
	}
}

// requestsPaged lists requests of several commands each, a page at a time.
func (c storeTest) requestsPaged() {
	var want []int64 // newest first
	for n := range 7 {
		commands := make([]history.Command, 1+5*(n%2))
		for i := range commands {
			commands[i] = commandOf("a")
		}
		want = append([]int64{ids(c.enqueue(commands...))[0]}, want...)
	}
	c.claim(after(1), 1, 1)
	for _, tc := range []struct {
		filter history.CommandFilter
		want   []int64
	}{
		{history.CommandFilter{Limit: 2}, want},
		{history.CommandFilter{Limit: 7}, want},
		{history.CommandFilter{Limit: 3, States: []history.CommandState{history.CommandPending}}, want[:6]},
		{history.CommandFilter{Limit: 3, Actor: "bob"}, nil},
	} {
		var got []int64
		for {
			page, next, err := c.Requests(c.Context(), tc.filter)
			if err != nil {
				c.Fatal(err)
			}
			for _, r := range page {
				got = append(got, r.First.RequestID)
			}
			if tc.filter.Before = next; next == 0 {
				break
			}
			if len(page) != tc.filter.Limit || len(got) > len(want) {
				c.Fatalf("page of %d requests has %d, after %v", tc.filter.Limit, len(page), got)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			c.Errorf("requests in pages of %d (-want +got):\n%s", tc.filter.Limit, diff)
		}
	}
}
