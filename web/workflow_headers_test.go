package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

// clientChord are the events of a chord that a client sent: each task of the header has a root of its own, and the body that of
// the last. Beside it runs another task that the same client sent.
func clientChord() []*state.Event {
	var events []*state.Event
	add := func(id, root, parent string, second int) {
		for i, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
			e := taskEvent(kind, id, second+i)
			if kind == state.TaskReceived {
				e.Name, e.RootID, e.ParentID = "shop."+id, root, parent
				e.Present |= state.FieldRootID
				if parent != "" {
					e.Present |= state.FieldParentID
				}
			}
			events = append(events, e)
		}
	}
	for i, id := range []string{"one", "two", "three", "alone"} {
		add(id, id, "", i/2)
	}
	add("body", "three", "three", 9)
	return events
}

func TestGraphShowsTheHeaderThatAClientSent(t *testing.T) {
	t.Parallel()
	in := func(id string) results.Result {
		return results.Result{TaskID: id, Status: "SUCCESS", GroupID: "group-1"}
	}
	chord := map[string]results.Result{"one": in("one"), "two": in("two"), "three": in("three"), "body": in("body"), "alone": {TaskID: "alone", Status: "SUCCESS"}}
	saved := func(size int, members ...string) map[string]results.StoredGroup {
		return map[string]results.StoredGroup{"group-1": {Members: members, Size: size}}
	}
	for name, test := range map[string]struct {
		records      map[string]results.Result
		groups       map[string]results.StoredGroup
		boxes, waits int
		say          string
	}{
		"by stored results": {chord, nil, 4, 3, "3 of its tasks are known by their stored results, and there may be more."},
		"by a saved group":  {chord, saved(0, "one", "two", "three"), 4, 3, "A client sent the 3 tasks of group grou."},
		"some of them":      {chord, saved(5), 4, 3, "A client sent the 5 tasks of group grou; 3 are known."},
		"the last alone": {
			map[string]results.Result{"three": in("three"), "body": in("body")},
			nil, 2, 1,
			"A client sent one of these tasks in group grou; which others are in that is not known.",
		},
		"a body alone": {map[string]results.Result{"body": in("body")}, nil, 2, 0, "the stored results of these tasks name none"},
		"none":         {nil, nil, 2, 0, "No event tells of groups, and the stored results of these tasks name none."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beside(t, &fakeResults{records: test.records, groups: test.groups}, func(t *testing.T, h http.Handler) {
				page := visit(t, h, "/ops/workflows/three?tab=graph").Body.String()
				if boxes, waits := strings.Count(page, `class="box"`), strings.Count(page, `class="arrow waits" d=`); boxes != test.boxes || waits != test.waits {
					t.Errorf("%d tasks, of which %d lead to a body; want %d and %d", boxes, waits, test.boxes, test.waits)
				}
				if !strings.Contains(page, test.say) {
					_, after, _ := strings.Cut(page, "Arrows follow")
					t.Errorf("the page does not say %q but %.400q", test.say, after)
				}
			}, clientChord()...)
		})
	}
}

// A chain in a header: the last of it is in the group, and the body follows that.
func TestGraphShowsAChainInAHeader(t *testing.T) {
	t.Parallel()
	in := results.Result{Status: "SUCCESS", GroupID: "group-1"}
	s := &fakeResults{records: map[string]results.Result{
		"r": {Status: "SUCCESS"}, "part-0": in, "part-1": in, "body": in, "other": in,
	}}
	events := append(treeEvents(2), clientChord()[:3]...)
	s.records["one"] = in
	beside(t, s, func(t *testing.T, h http.Handler) {
		page := visit(t, h, "/ops/workflows/r?tab=graph").Body.String()
		for _, want := range []string{`class="arrow waits" d=`, "shop.one", "3 of its tasks are known"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}, events...)
}

// A task that is replaced by a chord sends the header, of which its own record tells nothing.
func TestGraphTakesNoHeaderOfATaskForAClients(t *testing.T) {
	t.Parallel()
	in := results.Result{Status: "SUCCESS", GroupID: "group-1"}
	s := &fakeResults{records: map[string]results.Result{"r": {Status: "SUCCESS"}, "part-0": in, "part-1": in, "body": in}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		page := visit(t, h, "/ops/workflows/r?tab=graph").Body.String()
		if n := strings.Count(page, `class="arrow waits" d=`); n != 2 || strings.Contains(page, "A client sent") {
			t.Errorf("%d tasks lead to the body, want 2; or a client is said to have sent them", n)
		}
	}, treeEvents(2)...)
}

func TestGraphSaysWhatChordUnlockWaitsFor(t *testing.T) {
	t.Parallel()
	events := clientChord()
	for _, e := range events {
		if e.ID == "three" && e.Kind == state.TaskReceived {
			e.Name = "celery.chord_unlock"
		}
	}
	beside(t, &fakeResults{}, func(t *testing.T, h http.Handler) {
		page := visit(t, h, "/ops/workflows/three?tab=graph").Body.String()
		if !strings.Contains(page, "celery.chord_unlock waits for the header of a chord; no event names the tasks of that.") || strings.Contains(page, `class="arrow waits" d=`) {
			t.Error("the page draws a header, or does not say that it is unknown")
		}
	}, events...)
}
