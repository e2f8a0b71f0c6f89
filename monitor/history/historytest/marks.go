package historytest

import (
	"errors"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func marks() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Marks are kept":                  storeTest.marksKept,
		"Marks come by time":              storeTest.marksByTime,
		"Marks are bounded":               storeTest.marksBounded,
		"Marks that are gone stay gone":   storeTest.marksDeleted,
		"Old marks are pruned":            storeTest.marksPruned,
		"Marks of hostile texts are kept": storeTest.marksHostile,
	}
}

// markedAt is the time of the first mark.
var markedAt = time.Date(2026, 11, 21, 12, 0, 0, 123_000, time.UTC) //nolint:gochecknoglobals // a constant

func (c storeTest) mark(m history.Mark) history.Mark {
	c.Helper()
	added, err := c.AddMark(c.Context(), m)
	if err != nil {
		c.Fatalf("add mark %+v: %v", m, err)
	}
	if added.ID == "" {
		c.Fatal("a mark has no id")
	}
	return added
}

func (c storeTest) marks(from, to time.Time, limit int) []history.Mark {
	c.Helper()
	list, err := c.Marks(c.Context(), from, to, limit)
	if err != nil {
		c.Fatalf("marks: %v", err)
	}
	return list
}

// allMarks are those of a century.
func (c storeTest) allMarks() []history.Mark {
	c.Helper()
	return c.marks(markedAt.AddDate(-50, 0, 0), markedAt.AddDate(50, 0, 0), 2*history.MaxMarks)
}

func (c storeTest) marksKept() {
	if got := c.allMarks(); len(got) > 0 {
		c.Errorf("marks of an empty history = %+v", got)
	}
	m := history.Mark{At: markedAt, Text: "v2.3.1", Link: "https://ci.example.com/17", Service: "shop", Version: "2.3.1", By: "ci"}
	m.ID = c.mark(m).ID
	c.reopen()
	if diff := cmp.Diff([]history.Mark{m}, c.allMarks()); diff != "" {
		c.Errorf("marks (-want +got):\n%s", diff)
	}
}

func (c storeTest) marksByTime() {
	for _, minutes := range []int{3, 1, 4, 2, 0} {
		c.mark(history.Mark{At: markedAt.Add(time.Duration(minutes) * time.Minute), Text: strconv.Itoa(minutes)})
	}
	for name, tt := range map[string]struct {
		from, to, limit int
		want            []string
	}{
		"a span without its end":   {1, 3, 9, []string{"1", "2"}},
		"the newest of many":       {0, 9, 2, []string{"3", "4"}},
		"a span without any marks": {7, 9, 9, nil},
	} {
		var got []string
		for _, m := range c.marks(markedAt.Add(time.Duration(tt.from)*time.Minute), markedAt.Add(time.Duration(tt.to)*time.Minute), tt.limit) {
			got = append(got, m.Text)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			c.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// marksBounded adds more marks than are kept.
func (c storeTest) marksBounded() {
	const more = 2
	for i := range history.MaxMarks + more {
		c.mark(history.Mark{At: markedAt.Add(time.Duration(i) * time.Second), Text: strconv.Itoa(i)})
	}
	all := c.allMarks()
	if len(all) != history.MaxMarks || all[0].Text != strconv.Itoa(more) {
		c.Errorf("%d marks are kept, the oldest is %q, want %d and %d", len(all), all[0].Text, history.MaxMarks, more)
	}
}

func (c storeTest) marksDeleted() {
	m := c.mark(history.Mark{At: markedAt, Text: "a"})
	gone, err := c.DeleteMark(c.Context(), m.ID)
	if err != nil {
		c.Fatalf("delete mark: %v", err)
	}
	if diff := cmp.Diff(m, gone); diff != "" {
		c.Errorf("deleted mark (-want +got):\n%s", diff)
	}
	for _, id := range []string{m.ID, "", "0", "-1", "no id", "99999999999999999999"} {
		if _, err := c.DeleteMark(c.Context(), id); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("delete mark %q: error %v, want %v", id, err, history.ErrNotFound)
		}
	}
	c.reopen()
	if next := c.mark(history.Mark{At: markedAt, Text: "a"}); next.ID == m.ID {
		c.Errorf("a new mark has the id %q of one that is gone", next.ID)
	}
}

func (c storeTest) marksPruned() {
	now := markedAt.Add(history.MarkRetention)
	c.mark(history.Mark{At: markedAt.Add(-time.Second), Text: "old"})
	kept := c.mark(history.Mark{At: markedAt.Add(time.Second), Text: "kept"})
	if err := c.Prune(c.Context(), now, func(history.Pruned) {}); err != nil {
		c.Fatalf("prune: %v", err)
	}
	if diff := cmp.Diff([]history.Mark{kept}, c.allMarks()); diff != "" {
		c.Errorf("marks (-want +got):\n%s", diff)
	}
}

func (c storeTest) marksHostile() {
	var want []history.Mark
	for _, text := range hostile() {
		want = append(want, c.mark(history.Mark{At: markedAt, Text: text, Link: text, Service: text, Version: text, By: text}))
	}
	c.reopen()
	if diff := cmp.Diff(want, c.allMarks()); diff != "" {
		c.Errorf("marks (-want +got):\n%s", diff)
	}
}
