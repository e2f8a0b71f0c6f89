package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// workers returns what is known of the live workers, and counts those that have not been asked yet.
func (r *Report) workers(o Options) []settings.Worker {
	versions := map[string]string{}
	o.Tasks.View(func(c state.View) {
		for _, w := range c.Workers() {
			if w.Version != nil {
				versions[w.Name] = *w.Version
			}
		}
	})
	shared := map[*remote.RegisteredTask][]settings.Task{}
	var list []settings.Worker
	for _, s := range o.Settings() {
		if s.AskedAt.IsZero() {
			r.Waiting++
			continue
		}
		w := worker(s)
		w.Version = versions[s.Node]
		if len(s.Tasks) > 0 {
			key := &s.Tasks[0]
			if shared[key] == nil {
				for _, t := range s.Tasks {
					shared[key] = append(shared[key], settings.Task{Name: t.Name, Attributes: t.Info})
				}
			}
			w.Tasks = shared[key]
		}
		list = append(list, w)
	}
	return list
}

// worker returns what a worker reported, but for its tasks.
func worker(s remote.WorkerSettings) settings.Worker {
	w := settings.Worker{Name: s.Node, Conf: s.Conf}
	for _, method := range slices.Sorted(maps.Keys(s.Errors)) {
		why := s.Errors[method]
		switch {
		case strings.HasPrefix(why, "reply is a pickle"):
			w.Pickles, why = true, "Replies are pickles, which Umbel does not read: set task_serializer to json."
		case strings.HasPrefix(why, "no reply from "):
			why = "No reply."
		}
		if why = strings.TrimSuffix(why, ".") + "."; !slices.Contains(w.Why, why) {
			w.Why = append(w.Why, why)
		}
	}
	if len(w.Why) > 0 && s.Conf != nil && !w.Pickles {
		w.Why = append(w.Why[:0], fmt.Sprintf("No reply since %s UTC: what was reported then is judged.", s.At.UTC().Format("15:04:05")))
	}
	if s.Stats == nil {
		return w
	}
	w.Transport, w.VisibilityTimeout = transport(s.Stats.Broker)
	w.Pool = s.Stats.Pool.Kind
	if n := s.Stats.Pool.Slots; n != nil {
		w.Slots = *n
	}
	if n := s.Stats.PrefetchCount; n != nil {
		w.Prefetch = *n
	}
	if limit := s.Stats.Pool.HardLimit; limit != nil {
		w.TimeLimit = time.Duration(*limit * float64(time.Second))
	}
	return w
}

// transport reads which broker a worker is connected to, and its visibility timeout.
func transport(broker map[string]json.RawMessage) (name string, visibility time.Duration) {
	_ = json.Unmarshal(broker["transport"], &name) // what is not a text is unknown
	switch name {
	case "redis", "rediss", "sentinel":
		name = "redis"
	case "amqp", "amqps", "pyamqp", "py-amqp", "librabbitmq", "confirm":
		name = "amqp"
	default:
		return "", 0
	}
	var options struct {
		Visibility json.RawMessage `json:"visibility_timeout"`
	}
	if json.Unmarshal(broker["transport_options"], &options) != nil {
		return name, 0
	}
	if f, err := strconv.ParseFloat(strings.Trim(string(options.Visibility), `"`), 64); err == nil && f > 0 && f < 1e9 {
		visibility = time.Duration(f * float64(time.Second))
	}
	return name, visibility
}
