package remote_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settled is what a worker replies of its settings.
func settled(conf string) map[string]string {
	return map[string]string{
		"conf": conf, "registered": `["tasks.add [acks_late=True max_retries=3]"]`,
		"stats": `{"pid":1,"broker":{"transport":"redis","transport_options":{"visibility_timeout":60}}}`,
	}
}

func TestSettingsAreReadInBatches(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		var alive []string
		for n := range 250 {
			name := fmt.Sprintf("w%03d", n)
			alive = append(alive, name)
			f.add(t, name, tells(settled(`{"task_acks_late":true}`)))
		}
		i := inspector(t, f, alive...)
		for _, s := range i.CachedSettings() {
			if !s.AskedAt.IsZero() {
				t.Fatalf("first look = %+v, want nothing known yet", s)
			}
		}
		if _, ok := i.AcksLate("w000", "tasks.add"); ok {
			t.Error("acks_late is known of a worker that has not replied")
		}
		<-time.After(time.Second)
		for task, want := range map[string]bool{"tasks.add": true, "tasks.other": false} {
			if late, ok := i.AcksLate("w000", task); late != want || ok != want {
				t.Errorf("acks_late of %s = %v, known %v; want %v", task, late, ok, want)
			}
		}
		known := i.CachedSettings()
		for _, s := range known {
			if len(s.Errors) > 0 || string(s.Conf["task_acks_late"]) != "true" || len(s.Tasks) != 1 || s.Stats == nil || &s.Tasks[0] != &known[0].Tasks[0] {
				t.Fatalf("settings = %+v, want all, with one list of tasks for all workers", s)
			}
		}
		for range 25 { // somebody watches
			i.CachedSettings()
			<-time.After(time.Second)
		}
		if diff := cmp.Diff(map[string]int{"conf": 250, "registered": 250, "stats": 250}, heardOf(f)); diff != "" {
			t.Errorf("requests in 26 s (-want +got):\n%s", diff)
		}
		for _, r := range f.requests() {
			if len(r.Destination) == 0 || len(r.Destination) > 100 {
				t.Fatalf("%s is sent to %d workers, want a batch", r.Method, len(r.Destination))
			}
		}
		<-time.After(time.Minute)
		i.CachedSettings()
		<-time.After(time.Second)
		if got := heardOf(f)["conf"]; got != 750 {
			t.Errorf("conf was asked for %d times, want 750: once more after half a minute, and when somebody looks again", got)
		}
	})
}

func TestSettingsBySilentAndOddWorkers(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		odd := settled(`["no settings"]`)
		odd["registered"], odd["stats"] = `"none"`, `7`
		f.add(t, "former", tells(settled(`{"CELERY_ACKS_LATE":true,"CELERYD_PREFETCH_MULTIPLIER":1,"BROKER_URL":"redis://:secret@r"}`)))
		f.add(t, "odd", tells(odd))
		f.add(t, "silent", mute)
		i := inspector(t, f, "former", "odd", "silent")
		i.CachedSettings()
		<-time.After(3 * time.Second)
		known := i.CachedSettings()
		if got := fmt.Sprint(known[0].Conf); len(known[0].Conf) != 2 || string(known[0].Conf["task_acks_late"]) != "true" || strings.Contains(got, "secret") {
			t.Errorf("settings by former names = %s", got)
		}
		want := map[string]string{
			"conf": "reply to conf is not understood", "registered": "reply to registered is not understood", "stats": "reply to stats is not understood",
		}
		if diff := cmp.Diff(want, known[1].Errors); diff != "" || known[1].Conf != nil {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		if why := known[2].Errors["conf"]; known[2].AskedAt.IsZero() || why != "no reply from silent in 2 s" {
			t.Errorf("silent worker = %+v", known[2])
		}
	})
}

func TestListsOfTasksAreBounded(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		var alive []string
		for n := range 6 {
			name := fmt.Sprintf("w%d", n)
			alive = append(alive, name)
			values := settled(`{}`)
			values["registered"] = "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`"t%d",`, n), 10_000), ",") + "]"
			f.add(t, name, tells(values))
		}
		i := inspector(t, f, alive...)
		i.CachedSettings()
		<-time.After(3 * time.Second)
		left := 0
		for _, s := range i.CachedSettings() {
			if s.Errors["registered"] == "workers differ in too many tasks to keep the lists of all" && s.Tasks == nil {
				left++
			}
		}
		if left != 1 {
			t.Errorf("%d of 6 workers with 10,000 different tasks each are left out, want 1", left)
		}
	})
}
