package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

// The numbers beside facets are of the tasks that a click leads to.
func TestFacetsCountWhatTheQueryLeaves(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	for i := range 4 {
		id := fmt.Sprint("other-", i)
		b.Apply(&state.Event{
			Kind: state.TaskReceived, Hostname: "celery@b/1%20ü", PID: 41, ID: id, Name: "mail.send", Args: "(7,)", Clock: int64(900 + i),
			Micros: noon, ReceivedMicros: noon, Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldArgs,
		})
	}
	h := dashboard(t, b)
	tests := map[string]string{ // values of facets with their numbers, and what a number must not hide
		"": "Received 4, Started 10, Success 10, Failure 10; billing.charge 30, mail.send 4; celery@a 30, celery@b/1%20ü 4",
		// A state has no part in its own numbers: other states are one click away.
		"state:failure":                  "Received 4, Started 10, Success 10, Failure 10; billing.charge 10; celery@a 10",
		"name:mail.send":                 "Received 4; billing.charge 30, mail.send 4; celery@b/1%20ü 4",
		`args:~"(7"`:                     "Received 4; mail.send 4; celery@b/1%20ü 4",
		"state:failure worker:celery@a":  "Started 10, Success 10, Failure 10; billing.charge 10; celery@a 10",
		"state:failure name:mail.send":   "Received 4; billing.charge 10, mail.send 0; ",
		`state:received args:~"nothing"`: "; ; ",
	}
	chip := regexp.MustCompile(`(?s)class="state [^>]*>.*?</svg>\s*(\w+)\s*</span>\s*<span class="count">([^<]+)`)
	value := regexp.MustCompile(`(?s)<span class="value">([^<]+)</span>\s*<span class="count">([^<]+)`)
	for q, want := range tests {
		target := "/ops/tasks"
		if q != "" {
			target += "?q=" + url.QueryEscape(q)
		}
		page := visit(t, h, target).Body.String()
		_, facets, _ := strings.Cut(page, `id="facets"`)
		facets, _, _ = strings.Cut(facets, `<section`)
		states, menus, _ := strings.Cut(facets, "<details")
		list := func(found [][]string) string {
			var words []string
			for _, m := range found {
				if m[2] != "0" || m[1] == "mail.send" {
					words = append(words, m[1]+" "+m[2])
				}
			}
			return strings.Join(words, ", ")
		}
		names, workers, _ := strings.Cut(menus, "<details")
		got := list(chip.FindAllStringSubmatch(states, -1)) + "; " + list(value.FindAllStringSubmatch(names, -1)) + "; " +
			list(value.FindAllStringSubmatch(workers, -1))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", q, diff)
		}
	}
}
