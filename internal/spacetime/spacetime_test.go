package spacetime_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/spacetime"
)

func diagram(events int) spacetime.Diagram {
	d := spacetime.Diagram{Title: "Two <lanes>", Notes: []string{"a & b"}, Lanes: []string{"A", "B"}}
	for i := range events {
		d.Events = append(d.Events, spacetime.Event{Lane: i % 2, Mark: fmt.Sprint(i), Text: fmt.Sprintf("event %d", i)})
		if i > 0 {
			d.Arrows = append(d.Arrows, spacetime.Arrow{From: i - 1, To: i, Kind: "call"})
		}
	}
	d.Intervals = []spacetime.Interval{{From: 0, To: 2, Text: "busy"}, {From: 1, To: -1, Text: "idle"}}
	return d
}

func document(t *testing.T, d spacetime.Diagram) string {
	t.Helper()
	var b bytes.Buffer
	if err := spacetime.Document(t.Context(), &b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDocumentSaysEverythingTwice(t *testing.T) {
	t.Parallel()
	got := document(t, diagram(4))
	for want, count := range map[string]int{
		"<circle ": 4, `class="arrow k0" d="`: 3, `class="bar"`: 2, "call of A, event 1": 1, "call to B": 2, "busy begins": 1, "busy ends": 1, "idle begins": 1,
		"Two &lt;lanes&gt;": 3, "a &amp; b": 1, "were left out": 0, "more followed": 0, "http": 0, "<script": 0,
	} {
		if n := strings.Count(got, want); n != count {
			t.Errorf("%q occurs %d times, want %d", want, n, count)
		}
	}
}

func TestSVGIsWellFormed(t *testing.T) {
	t.Parallel()
	v, err := spacetime.LayOut(diagram(50))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := spacetime.SVG(v).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(&b); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLongRunsAreCut(t *testing.T) {
	t.Parallel()
	d := diagram(1000)
	d.Total = 5000
	got := document(t, d)
	if n := strings.Count(got, "<circle "); n != spacetime.MaxEvents {
		t.Errorf("%d events are drawn, want %d", n, spacetime.MaxEvents)
	}
	if want := "Only the first 250 events are drawn; 4750 more followed."; !strings.Contains(got, want) {
		t.Errorf("the page does not say %q", want)
	}
}

func TestDiagramsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*spacetime.Diagram){
		"lane":     func(d *spacetime.Diagram) { d.Events[0].Lane = 2 },
		"arrow":    func(d *spacetime.Diagram) { d.Arrows[0].To = 99 },
		"backward": func(d *spacetime.Diagram) { d.Arrows[1].To = 0 },
		"interval": func(d *spacetime.Diagram) { d.Intervals[0].From = -1 },
	} {
		d := diagram(4)
		change(&d)
		if err := spacetime.Document(t.Context(), io.Discard, d); err == nil {
			t.Errorf("%s out of range is accepted", name)
		}
	}
	if err := spacetime.Document(t.Context(), io.Discard, spacetime.Diagram{}); err != nil {
		t.Errorf("an empty diagram: %v", err)
	}
}
