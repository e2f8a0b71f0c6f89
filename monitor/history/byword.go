package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// WordReader is what a list that is sorted by a word is read from.
type WordReader interface {
	// Tasks returns a page of the tasks that match, newest change first.
	Tasks(ctx context.Context, r TaskRequest) (TaskPage, error)
	// Words returns values of a field, as TaskReader does.
	Words(ctx context.Context, r WordRange) ([]string, error)
}

// WordRange asks for values of a field.
type WordRange struct {
	Field      query.Field
	After      string // the values follow this one; empty means all do
	Descending bool
	Limit      int
}

// Next returns the first values of a range, which are among list. It sorts list.
func (r WordRange) Next(list []string) []string {
	slices.Sort(list)
	list = slices.Compact(list)
	if r.Descending {
		slices.Reverse(list)
	}
	begin := slices.IndexFunc(list, func(w string) bool {
		return w != "" && (r.After == "" || w != r.After && (w < r.After) == r.Descending)
	})
	if begin < 0 {
		return nil
	}
	list = list[begin:]
	return list[:min(r.Limit, len(list))]
}

const (
	maxFew       = 500                   // tasks of a list that is sorted once it is read
	wordsAtOnce  = 100                   // values that are asked for
	wordsTimeout = 50 * time.Millisecond // for values of which no task matches
)

// TasksByWord returns a page of a list that is sorted by a word: the values of the field in their order, and the tasks of
// each value, newest change first. No index has that order. If few tasks match, they are sorted. Otherwise the values are
// looked up one after the other.
func TasksByWord(ctx context.Context, from WordReader, r TaskRequest) (TaskPage, error) {
	w := wordList{from: from, r: r, start: time.Now(), ids: make(map[string]bool)}
	if !r.Query.All() {
		page, few, err := w.few(ctx)
		if few || err != nil {
			return page, err
		}
		w.searched = maxFew
	}
	return w.walk(ctx)
}

// wordList reads one page.
type wordList struct {
	from     WordReader
	r        TaskRequest
	start    time.Time
	searched int
	rows     []wordRow // in the direction of reading
	ids      map[string]bool
}

// wordRow is a task with its place in the list.
type wordRow struct {
	task state.Task
	at   state.Position
}

// descending reports whether the words are read from the last one on.
func (w *wordList) descending() bool { return w.r.Sort.Ascending == w.r.Newer }

// compare orders places in the direction of reading.
func (w *wordList) compare(a, b state.Position) int {
	words, rest := strings.Compare(a.Word, b.Word), a.Compare(b)
	if w.descending() {
		words = -words
	}
	if !w.r.Newer { // newest first, whatever the order of the words
		rest = -rest
	}
	return cmp.Or(words, rest)
}

// few reads all tasks that match, if they are at most maxFew, and returns the page of them.
func (w *wordList) few(ctx context.Context) (page TaskPage, ok bool, err error) {
	all := w.r
	all.Sort, all.From, all.Newer, all.Limit = query.Sort{}, nil, false, maxFew
	found, err := w.from.Tasks(ctx, all)
	if err != nil || found.Next != nil {
		return TaskPage{}, false, err
	}
	for i := range found.Tasks {
		w.add(&found.Tasks[i], "")
	}
	slices.SortFunc(w.rows, func(a, b wordRow) int { return w.compare(a.at, b.at) })
	return w.page(nil), true, nil
}

// walk reads the tasks of one word after the other until the page is full.
func (w *wordList) walk(ctx context.Context) (TaskPage, error) {
	next := WordRange{Field: w.r.Sort.Field, Descending: w.descending(), Limit: wordsAtOnce}
	if from := w.r.From; from != nil {
		next.After = from.Word
		rest := *from
		rest.Word = ""
		on, done, err := w.word(ctx, from.Word, &rest)
		if done || err != nil {
			return w.page(on), err
		}
	}
	for {
		words, err := w.from.Words(ctx, next)
		if err != nil {
			return TaskPage{}, fmt.Errorf("list the values of %s: %w", next.Field, err)
		}
		for _, word := range words {
			on, done, err := w.word(ctx, word, nil)
			if done || err != nil {
				return w.page(on), err
			}
		}
		if len(words) < next.Limit {
			return w.page(nil), nil
		}
		next.After = words[len(words)-1]
	}
}

// word reads the tasks of a word that follow from. The page is done if it is full, or if reading took too long: then it goes on
// after on.
func (w *wordList) word(ctx context.Context, word string, from *state.Position) (on *state.Position, done bool, err error) {
	r := w.r
	r.Sort, r.From = query.Sort{}, from
	r.Query = r.Query.And(query.New(query.Equal(w.r.Sort.Field, word)))
	for {
		r.Limit = w.r.Limit + 1 - len(w.rows)
		page, err := w.from.Tasks(ctx, r)
		if err != nil {
			return nil, false, fmt.Errorf("list the tasks of %s: %w", word, err)
		}
		r.From = page.Next
		if r.Newer {
			slices.Reverse(page.Tasks)
			r.From = page.Prev
		}
		for i := range page.Tasks {
			w.add(&page.Tasks[i], word)
		}
		w.searched += page.Searched
		switch {
		case len(w.rows) > w.r.Limit:
			return nil, true, nil
		case r.From != nil && page.Searched > 0:
			on := *r.From
			on.Word = word
			return &on, true, nil
		case r.From == nil:
			return w.end(word), w.late(), nil
		}
	}
}

// late reports whether reading took too long because many values have no task that matches.
func (w *wordList) late() bool {
	limit := wordsTimeout
	if len(w.rows) == 0 {
		limit *= 10
	}
	return w.searched > 0 && time.Since(w.start) > limit
}

// end is the place after all tasks of a word.
func (w *wordList) end(word string) *state.Position {
	end := &state.Position{Word: word}
	if w.r.Newer {
		end.Stamp.Clock = math.MaxInt64
	}
	return end
}

// add adds a task that is in the list after From. The query also finds those that only once had the word; an empty word is any.
func (w *wordList) add(t *state.Task, word string) {
	at := state.Position{Word: w.r.Sort.Field.Word(t), Stamp: t.Stamp, ID: t.ID}
	if at.Word == "" || word != "" && at.Word != word || w.ids[t.ID] || w.r.From != nil && w.compare(at, *w.r.From) <= 0 {
		return
	}
	w.ids[t.ID] = true // it may change, and be found again
	w.rows = append(w.rows, wordRow{*t, at})
}

// page returns the page, which goes on after on; nil is the end of the list.
func (w *wordList) page(on *state.Position) TaskPage {
	var page TaskPage
	if len(w.rows) > w.r.Limit {
		w.rows = w.rows[:w.r.Limit]
		on = new(w.rows[w.r.Limit-1].at)
	} else if on != nil {
		page.Searched = w.searched
	}
	for i := range w.rows {
		page.Tasks = append(page.Tasks, w.rows[i].task)
	}
	var back *state.Position
	if w.r.From != nil && len(w.rows) > 0 {
		back = new(w.rows[0].at)
	}
	page.Prev, page.Next = back, on
	if w.r.Newer {
		slices.Reverse(page.Tasks)
		page.Prev, page.Next = on, back
	}
	return page
}
