package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

func names(c *state.Cluster) (list []string) {
	for _, w := range c.Workers() {
		list = append(list, w.Name)
	}
	return list
}

func TestOfflineWorkersAreForgottenByAge(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	for i, name := range []string{"old", "busy", "young", "back"} {
		beat := heartbeat(10, float64(i))
		beat.Hostname = name
		if name == "young" {
			beat.ReceivedMicros = at(5000)
		}
		c.Apply(&beat)
	}
	apply(c, ev(state.TaskStarted, "a", "busy", 10, 5))
	saved := map[string]bool{}
	save := func() {
		if err := c.SaveWorkers(nil, func(name string, body []byte) { saved[name] = body != nil }); err != nil {
			t.Fatal(err)
		}
	}
	save()
	c.Expire(at(6000))
	if n := c.ForgetWorkers(at(4000)); n != 2 {
		t.Errorf("forgot %d workers, want 2", n)
	}
	if diff := cmp.Diff([]string{"busy", "young"}, names(c)); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	beat := heartbeat(11, 6000)
	beat.Hostname = "back"
	apply(c, beat)
	save()
	if diff := cmp.Diff(map[string]bool{"old": false, "busy": true, "young": true, "back": true}, saved); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
}
