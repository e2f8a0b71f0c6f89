package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// repeated adds to b another task of the call shop.add(1, 2), which succeeds too, and returns the key of both.
func repeated(t *testing.T, b *backend) string {
	t.Helper()
	b.apply(
		received("celery@w1", 11, "again", "shop.add", "", ""),
		state.Event{Kind: state.TaskStarted, Hostname: "celery@w1", PID: 11, ID: "again"},
		state.Event{
			Kind: state.TaskSucceeded, Hostname: "celery@w1", PID: 11, ID: "again", Result: "3", Runtime: 0.5,
			Present: state.FieldResult | state.FieldRuntime,
		},
	)
	found, err := b.Duplicates(t.Context(), history.DuplicateRequest{Name: "shop.add", Limit: 1})
	if err != nil || len(found.Groups) != 1 {
		t.Fatalf("%d groups, %v; want 1", len(found.Groups), err)
	}
	return found.Groups[0].Key.String()
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	key := repeated(t, b)
	h := atNoon(b)
	page := decode(t, get(t, h, "/duplicates").Body.String())
	items := page["items"].([]any)
	if len(items) != 1 {
		t.Fatalf("%d groups, want 1", len(items))
	}
	item := items[0].(map[string]any)
	for _, measured := range []string{"wasted_seconds", "counts", "first_at", "last_at"} {
		delete(item, measured)
	}
	want := map[string]any{
		"key": key, "name": "shop.add", "arguments": "[1,2]", "tasks": json.Number("2"), "partial": false,
		"verdicts": []any{"rerun"}, "workers": []any{"celery@w1"}, "excluded": []any{}, "task_ids": []any{"again", taskID}, "period_seconds": nil,
	}
	if diff := cmp.Diff(want, item); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	stats := map[string]any{
		"tasks": json.Number("4"), "groups": json.Number("1"), "grouped": json.Number("2"), "ungrouped": json.Number("0"),
		"ungrouped_names": []any{}, "pending": json.Number("0"),
	}
	if diff := cmp.Diff(stats, page["stats"].(map[string]any)); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	one := decode(t, get(t, h, "/duplicates/"+key).Body.String())
	pairs, _ := one["pairs"].([]any)
	if one["key"] != key || len(pairs) != 1 {
		t.Fatalf("group %v has %d pairs, want 1 of %s", one["key"], len(pairs), key)
	}
	pair := pairs[0].(map[string]any)
	first, second := pair["first"].(map[string]any)["task_id"], pair["second"].(map[string]any)["task_id"]
	if pair["verdict"] != "rerun" || first == second || first != taskID && first != "again" || len(pair["evidence"].([]any)) == 0 {
		t.Errorf("pair = %v, want %s and again, with evidence", pair, taskID)
	}
	if one := decode(t, get(t, h, "/duplicates/"+key+"?tasks=1").Body.String()); one["partial"] != true {
		t.Errorf("partial = %v of a group of which one task was compared", one["partial"])
	}
}

func TestDuplicatesComeInPages(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for i, name := range []string{"a", "b", "a", "b", "c", "c", "b"} {
		b.apply(received("celery@w1", 11, "task-"+string(rune('0'+i)), name, "", ""))
	}
	h := atNoon(b)
	for query, want := range map[string]string{"": "b c a", "sort=tasks": "b c a", "name=c": "c", "verdict=skipped": ""} {
		var got []string
		for target := "/duplicates?limit=1&" + query; target != "" && len(got) < 10; {
			page := decode(t, get(t, h, target).Body.String())
			for _, item := range page["items"].([]any) {
				got = append(got, item.(map[string]any)["name"].(string))
			}
			target = ""
			if next, ok := page["next"].(string); ok {
				target = "/duplicates?limit=1&" + query + "&cursor=" + next
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: groups on all pages = %q, want %q", query, got, want)
		}
	}
}

func TestDuplicatesThatAreNotThere(t *testing.T) {
	t.Parallel()
	h := atNoon(newBackend(t))
	for _, key := range []string{"x", strings.Repeat("0", 32), strings.Repeat("1", 32), strings.Repeat("A", 32), "task:", "task:none/x"} {
		if w := get(t, h, "/duplicates/"+key); w.Code != http.StatusNotFound {
			t.Errorf("group %s answers %d %s, want 404", key, w.Code, w.Body)
		}
	}
	for target, parameter := range map[string]string{
		"/duplicates?verdict=new": "verdict", "/duplicates?cursor=x": "cursor", "/duplicates?sort=name": "sort", "/duplicates?limit=0": "limit",
		"/duplicates?name=" + strings.Repeat("x", 2_000): "name", "/duplicates?q=x": "q", "/duplicates/x?tasks=501": "tasks",
		"/duplicates?cursor=0000000000000001&sort=tasks": "cursor",
	} {
		w := get(t, h, target)
		if got := decode(t, w.Body.String())["parameter"]; w.Code != http.StatusBadRequest || got != parameter {
			t.Errorf("%s answers %d about %v, want 400 about %s", target, w.Code, got, parameter)
		}
	}
}

// brokenDuplicates is a backend whose duplicates cannot be read.
type brokenDuplicates struct{ *backend }

func (brokenDuplicates) Duplicates(context.Context, history.DuplicateRequest) (view.DuplicatePage, error) {
	return view.DuplicatePage{}, errBroken
}

func (brokenDuplicates) DuplicateGroup(context.Context, history.DuplicateKey, int) (view.DuplicateGroup, error) {
	return view.DuplicateGroup{}, errBroken
}

func (brokenDuplicates) History() view.History { return brokenRules{} }

type brokenRules struct{ view.History }

func (brokenRules) DuplicateRules(context.Context) ([]history.DuplicateRule, error) {
	return nil, errBroken
}

func TestDuplicatesOfABrokenStore(t *testing.T) {
	t.Parallel()
	h := atNoon(brokenDuplicates{newBackend(t)})
	for _, target := range []string{"/duplicates", "/duplicates/" + strings.Repeat("1", 32), "/duplicates/rules"} {
		if w := get(t, h, target); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s answers %d %s, want 503 without the cause", target, w.Code, w.Body)
		}
	}
}
