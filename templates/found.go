package templates

import (
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/state"
)

// piece is a part of a text. Found ones are what was searched for.
type piece struct {
	Text  string
	Found bool
}

// around returns about n characters of a text, parted at the first of the words in it, which are found without regard to
// case. It returns false, and the beginning of the text, if there is none.
func around(s string, words []string, n int) ([]piece, bool) {
	s = strings.Join(strings.Fields(s), " ")
	from, to := place(s, words)
	if from < 0 {
		return []piece{{Text: excerpt(s, n)}}, false
	}
	to = min(to, from+n)
	start := 0
	if to > n*2/3 { // else it is seen without moving the text
		start = max(0, from-(n-(to-from))/3)
	}
	for start > 0 && s[start]&0xc0 == 0x80 { // inside a character
		start--
	}
	end := len(truncate.Bytes(s, max(to, start+n)))
	pieces := []piece{{Text: s[start:from]}, {s[from:min(to, end)], true}, {Text: s[min(to, end):end]}}
	if start > 0 {
		pieces[0].Text = "…" + pieces[0].Text
	}
	if end < len(s) {
		pieces[2].Text += "…"
	}
	return pieces, true
}

// place is where the first of the words in a text begins and ends, -1 if none is there.
func place(s string, words []string) (from, to int) {
	fold := strings.ToLower
	if len(fold(s)) != len(s) { // places in one are none in the other
		fold = strings.Clone
	}
	s, from = fold(s), -1
	for _, word := range words {
		word = fold(strings.Join(strings.Fields(word), " "))
		if at := strings.Index(s, word); word != "" && at >= 0 && (from < 0 || at < from) {
			from, to = at, at+len(word)
		}
	}
	return from, to
}

// failing returns the exception that a task failed or is being retried with, nil if it does neither.
func failing(t state.Task) *string {
	if t.State == state.Failure || t.State == state.Retry {
		return t.Exception
	}
	return nil
}

// elsewhere returns the name of the text that has one of the words, and the text, where neither arguments nor
// exception have any; empty if none has.
func elsewhere(t state.Task, words []string) (name, text string) {
	if at, _ := place(callOf(t, words), words); at >= 0 || len(words) == 0 {
		return "", ""
	}
	for _, f := range []struct {
		name string
		text *string
	}{{"exception", t.Exception}, {"result", t.Result}, {"traceback", t.Traceback}} {
		if f.text == nil {
			continue
		}
		if at, _ := place(*f.text, words); at < 0 {
			continue
		}
		if f.text == failing(t) {
			return "", "" // it is shown
		}
		return f.name, *f.text
	}
	return "", ""
}

// callOf is the arguments of a task on one line: all that is known where words are looked for in them, else the beginning.
func callOf(t state.Task, words []string) string {
	if len(words) == 0 {
		return preview(t, 400)
	}
	return preview(t, 1<<20)
}
