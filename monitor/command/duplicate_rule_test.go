package command_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// TestDuplicateRule previews, saves and deletes a rule.
func TestDuplicateRule(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	for i := range 6 {
		b.task(fmt.Sprint("t", i), state.TaskSucceeded, func(e *state.Event) {
			if e.Kwargs = fmt.Sprintf("{'order': %d, 'request_id': %d}", i/3, i); i == 5 {
				e.Kwargs = "{'order': 1, 'lines': [...]}"
			}
		})
	}
	b.task("other", state.TaskSucceeded, func(e *state.Event) { e.Name = "tasks.mail" })
	r := command.DuplicateRuleRequest{Name: "tasks.add", Exclude: []string{"request_id", "request_id"}}
	preview, err := b.PreviewDuplicateRule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range preview.Samples {
		slices.Sort(preview.Samples[i].IDs)
	}
	want := command.DuplicateRulePreview{
		Tasks: 6, Complete: true, Ungrouped: 1, After: command.DuplicateRuleEffect{Groups: 2, Grouped: 5},
		Samples: []command.DuplicateRuleSample{
			{Tasks: 3, IDs: []string{"t0", "t1", "t2"}, Args: "[1,2]", Kwargs: `{"order":0}`},
			{Tasks: 2, IDs: []string{"t3", "t4"}, Args: "[1,2]", Kwargs: `{"order":1}`},
		},
	}
	if diff := cmp.Diff(want, preview); diff != "" {
		t.Errorf("preview (-want +got):\n%s", diff)
	}
	for _, first := range []bool{true, false} { // the second is a double click
		if changed, err := b.SaveDuplicateRule(t.Context(), by, r); changed != first || err != nil {
			t.Fatalf("saved: %v, %v; want %v", changed, err, first)
		}
	}
	if preview, err = b.PreviewDuplicateRule(t.Context(), r); err != nil || !preview.Same || preview.Before != want.After || !slices.Equal(preview.Current, []string{"request_id"}) {
		t.Errorf("preview of the same rule: %+v, %v", preview, err)
	}
	r.Exclude = nil
	if changed, err := b.SaveDuplicateRule(t.Context(), by, r); !changed || err != nil {
		t.Errorf("deleted: %v, %v", changed, err)
	}
	log, _, err := b.AuditLog(t.Context(), history.AuditFilter{Limit: 10})
	if err != nil || len(log) != 2 || log[1].Action != "exclude fields" || log[0].Action != "include all fields" ||
		log[1].Target != "task tasks.add" || !strings.Contains(log[1].Detail, "request_id") || log[1].Actor != by.Actor {
		t.Errorf("audit log %+v, %v", log, err)
	}
}

func TestWrongDuplicateRules(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for field, r := range map[string]command.DuplicateRuleRequest{
		"name":       {Exclude: []string{"a"}},
		"exclude[1]": {Name: "t", Exclude: []string{"a", "b..c"}},
		"exclude":    {Name: "t", Exclude: make([]string, 101)},
		"exclude[0]": {Name: "t", Exclude: []string{strings.Repeat("a", 513)}},
	} {
		_, previewed := b.PreviewDuplicateRule(t.Context(), r)
		_, saved := b.SaveDuplicateRule(t.Context(), by, r)
		for _, err := range []error{previewed, saved} {
			if refused, ok := errors.AsType[*command.Error](err); !ok || refused.Field != field || refused.Kind != command.Invalid {
				t.Errorf("error %v, want one about %s", err, field)
			}
		}
	}
}
