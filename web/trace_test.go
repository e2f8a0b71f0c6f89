package web_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// traced saves a trace and reads it.
func traced(t *testing.T, h http.Handler, query string) (trace.Header, []trace.Entry) {
	t.Helper()
	w := visit(t, h, "/api/v1/trace?"+query)
	r, err := trace.NewReader(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%s: %d %s: %v", query, w.Code, w.Body, err)
	}
	entries, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r.Header(), entries
}

func noonAnd(d time.Duration) string {
	return url.QueryEscape(time.UnixMicro(noon).Add(d).UTC().Format(time.RFC3339Nano))
}

func TestTracesHoldWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	o := web.Options{}
	withPast(t, &o)
	h := newWeb(t, o)
	for query, want := range map[string]struct{ tasks, events int }{
		"":                 {30, 80},
		"q=":               {30, 80},
		"q=id:task-03":     {1, 3},
		"workflow=task-03": {1, 3},
		"q=state:failure&" + after(10500*time.Millisecond): {1, 3},
		after(10500 * time.Millisecond):                    {4, 10},
		"until=" + noonAnd(10500*time.Millisecond):         {4, 10},
		"q=id:task-99": {0, 0},
	} {
		head, entries := traced(t, h, query)
		if head.Tasks != want.tasks || head.Events != want.events {
			t.Errorf("%s: %d tasks, %d events, want %+v", query, head.Tasks, head.Events, want)
		}
		if len(entries) < head.Events || !head.Payload || !head.Redacted {
			t.Errorf("%s: %d entries; header %+v", query, len(entries), head)
		}
	}
	for query, want := range map[string]string{
		"since=" + noonAnd(time.Minute) + "&until=" + noonAnd(time.Second): "The span ends before it begins.",
		"until=2030-01-01T00:00:00Z":                                       "The instant is in the future.",
		"since=yesterday":                                                  "The parameter since must be a time such as",
		"until=now&at=now":                                                 "Give at or until, not both.",
		"q=state:":                                                         "The query is invalid:",
		"workflow=none":                                                    "No retained task has the root none.",
	} {
		if w := visit(t, h, "/api/v1/trace?"+query); w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestTracesOfSpans compares the tasks of spans with those of a trace of all that were touched in it or not finished.
func TestTracesOfSpans(t *testing.T) {
	t.Parallel()
	o := web.Options{}
	withPast(t, &o)
	h := newWeb(t, o)
	_, all := traced(t, h, "")
	for _, span := range [][2]time.Duration{{5 * time.Second, 7 * time.Second}, {0, 40 * time.Second}, {80 * time.Second, time.Hour}, {30 * time.Minute, time.Hour}} {
		from, to := noon+span[0].Microseconds(), noon+span[1].Microseconds()
		want, c := map[string]bool{}, state.New(state.Options{})
		for _, e := range all {
			if e.Event != nil && e.At() <= to {
				c.ApplySaved(e.Event)
				if e.At() > from {
					want[e.Event.Event.ID] = true
				}
			}
		}
		for _, task := range c.Tasks(state.Query{Limit: 100}).Tasks {
			if !task.State.Final() {
				want[task.ID] = true
			}
		}
		_, entries := traced(t, h, "since="+noonAnd(span[0])+"&until="+noonAnd(span[1]))
		got := map[string]bool{}
		for _, e := range entries {
			if e.Event != nil {
				got[e.Event.Event.ID] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("span %v (-want +got):\n%s", span, diff)
		}
	}
}

func TestTracesOfThoseWhoMayNotSeePayloadsHaveNone(t *testing.T) {
	t.Parallel()
	o := web.Options{Auth: viewer{}}
	withPast(t, &o)
	h := newWeb(t, o)
	head, entries := traced(t, h, "")
	for _, e := range entries {
		if e.Event == nil {
			continue
		}
		if v := e.Event.Event; v.Args+v.Kwargs+v.Result+v.Traceback != "" || strings.Contains(v.Exception, "(") {
			t.Errorf("an event has a payload: %+v", v)
		}
	}
	if head.Payload || head.Tasks != 30 {
		t.Errorf("header %+v, want 30 tasks without payloads", head)
	}
	if w := visit(t, h, "/api/v1/trace?q=args:1"); w.Code != http.StatusBadRequest {
		t.Errorf("a query by payload: %d", w.Code)
	}
}
