package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	settingsAge      = 30 * time.Second // after which a worker that has replied is asked for its settings again
	settingsBatch    = 100              // workers asked at once
	maxSettingsTasks = 50_000           // tasks of all different lists together
)

// WorkerSettings are the settings of one worker that decide whether its tasks are lost or run twice, as it reports
// them. Secrets are masked.
type WorkerSettings struct {
	Node    string
	AskedAt time.Time // when it was last asked, zero if it never was
	At      time.Time // of its last reply, zero if there is none
	// Errors say why a part is missing, or older than At, by method.
	Errors map[string]string
	// Conf are the settings of SettingNames by those names, defaults included. Nil is unknown.
	Conf map[string]json.RawMessage
	// Tasks have the attributes of TaskAttributes. Workers that report the same share one list, which must not be changed.
	Tasks []RegisteredTask
	Stats *Stats // nil is unknown
}

// SettingNames returns the settings that WorkerSettings has, with the names that they had before Celery 4.
func SettingNames() map[string]string {
	return map[string]string{
		"accept_content":                  "CELERY_ACCEPT_CONTENT",
		"broker_transport_options":        "BROKER_TRANSPORT_OPTIONS",
		"result_backend":                  "CELERY_RESULT_BACKEND",
		"result_expires":                  "CELERY_TASK_RESULT_EXPIRES",
		"result_serializer":               "CELERY_RESULT_SERIALIZER",
		"task_acks_late":                  "CELERY_ACKS_LATE",
		"task_acks_on_failure":            "CELERY_ACKS_ON_FAILURE",
		"task_acks_on_failure_or_timeout": "CELERY_ACKS_ON_FAILURE_OR_TIMEOUT",
		"task_acks_on_timeout":            "CELERY_ACKS_ON_TIMEOUT",
		"task_ignore_result":              "CELERY_IGNORE_RESULT",
		"task_reject_on_worker_lost":      "CELERY_REJECT_ON_WORKER_LOST",
		"task_retry_on_worker_lost":       "CELERY_RETRY_ON_WORKER_LOST",
		"task_serializer":                 "CELERY_TASK_SERIALIZER",
		"task_time_limit":                 "CELERYD_TASK_TIME_LIMIT",
		"worker_cancel_long_running_tasks_on_connection_loss": "CELERYD_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS",
		"worker_deduplicate_successful_tasks":                 "CELERYD_DEDUPLICATE_SUCCESSFUL_TASKS",
		"worker_prefetch_multiplier":                          "CELERYD_PREFETCH_MULTIPLIER",
	}
}

// TaskAttributes returns the attributes of task classes that WorkerSettings has.
func TaskAttributes() []string {
	return []string{
		"acks_late", "acks_on_failure", "acks_on_failure_or_timeout", "acks_on_timeout", "ignore_result", "max_retries",
		"reject_on_worker_lost", "retry_on_worker_lost", "serializer", "time_limit",
	}
}

// CachedSettings returns the cached settings of the live workers, by name, and has those refreshed that are older than
// half a minute. It does not wait. Run keeps refreshing them while CachedSettings is called now and then.
func (i *Inspector) CachedSettings() []WorkerSettings {
	alive := i.liveNames()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.want(&i.settingsRound, i.now())
	list := make([]WorkerSettings, len(alive))
	for n, node := range alive {
		list[n] = i.settings[node]
		list[n].Node = node
	}
	return list
}

// AcksLate reports whether a worker acknowledges a task after it has run, and whether the cached settings tell. It does not
// have them refreshed.
func (i *Inspector) AcksLate(node, task string) (late, ok bool) {
	i.mu.Lock()
	tasks := i.settings[node].Tasks
	i.mu.Unlock()
	for n := range tasks {
		if t := &tasks[n]; t.Name == task {
			value := t.Info["acks_late"]
			return value == "True", value == "True" || value == "False"
		}
	}
	return false, false
}

// liveNames returns the live workers that fit into the cache, by name.
func (i *Inspector) liveNames() []string {
	alive := slices.Compact(slices.Sorted(slices.Values(i.alive())))
	return alive[:min(len(alive), maxNodes)]
}

// inspectSettings asks the workers whose settings are old, in batches. It ends what begin began.
func (i *Inspector) inspectSettings(ctx context.Context) {
	alive := i.liveNames()
	i.mu.Lock()
	maps.DeleteFunc(i.settings, func(node string, _ WorkerSettings) bool { return !slices.Contains(alive, node) })
	now := i.now()
	due := slices.DeleteFunc(alive, func(node string) bool {
		s := i.settings[node]
		return len(s.Errors) == 0 && now.Sub(s.At) < settingsAge
	})
	i.mu.Unlock()
	for batch := range slices.Chunk(due, settingsBatch) {
		if ctx.Err() == nil {
			i.readSettings(ctx, batch)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.end(&i.settingsRound)
}

// readSettings asks some workers.
func (i *Inspector) readSettings(ctx context.Context, nodes []string) {
	requests := []inspection{
		{"conf", map[string]any{"with_defaults": true}},
		{"registered", map[string]any{"taskinfoitems": TaskAttributes()}},
		{"stats", nil},
	}
	asked := i.now()
	replies := make([]map[string]part, len(requests))
	var all sync.WaitGroup
	for n, q := range requests {
		all.Go(func() { replies[n] = i.parts(ctx, nodes, q) })
	}
	all.Wait()

	i.mu.Lock()
	defer i.mu.Unlock()
	for _, node := range nodes {
		s := WorkerSettings{Node: node, AskedAt: asked, Errors: make(map[string]string)}
		old := i.settings[node]
		s.At, s.Conf, s.Tasks, s.Stats = old.At, old.Conf, old.Tasks, old.Stats
		for n, q := range requests {
			p := replies[n][node]
			if p.err == "" {
				p.err = i.decodeSettings(&s, q.method, p.reply.Value)
			}
			if p.err != "" {
				s.Errors[q.method] = p.err
			} else if p.reply.At.After(s.At) {
				s.At = p.reply.At
			}
		}
		i.settings[node] = s
	}
	close(i.changed)
	i.changed = make(chan struct{})
}

// parts asks one request of several workers.
func (i *Inspector) parts(ctx context.Context, nodes []string, q inspection) map[string]part {
	a, err := i.client.Call(ctx, Request{Method: q.method, Arguments: q.arguments, Destination: nodes, Timeout: timeout})
	list := make(map[string]part, len(nodes))
	for _, node := range nodes {
		switch {
		case err != nil:
			list[node] = part{err: i.client.redact.SettingsText(err.Error())}
		case a.Disconnected:
			list[node] = part{err: "connection to the broker lost before " + node + " replied"}
		default:
			list[node] = part{err: "no reply from " + node + " in " + seconds(timeout)}
		}
	}
	for _, r := range a.Items {
		list[r.Node] = part{reply: r, err: problem(r)}
	}
	return list
}

// decodeSettings reads a reply into s and says what is wrong with it, empty if nothing is. The caller holds mu.
func (i *Inspector) decodeSettings(s *WorkerSettings, method string, v json.RawMessage) string {
	switch method {
	case "conf":
		conf := fieldsOf(v)
		if conf == nil {
			break
		}
		s.Conf = make(map[string]json.RawMessage)
		for name, former := range SettingNames() {
			for _, spelling := range []string{former, name} {
				if value, ok := conf[spelling]; ok {
					s.Conf[name] = bounded(value)
				}
			}
		}
		return ""
	case "registered":
		return i.shareTasks(s, v)
	case "stats":
		if stats := decodeStats(v); stats != nil {
			stats.Raw, stats.RUsage, stats.Total, stats.Pool.Processes, stats.Pool.Writes = nil, nil, nil, nil, nil
			s.Stats = stats
			return ""
		}
	}
	return "reply to " + method + " is not understood"
}

// shareTasks sets the tasks of s to the list that was made of an equal reply, or makes one. The caller holds mu.
func (i *Inspector) shareTasks(s *WorkerSettings, v json.RawMessage) string {
	sum := sha256.Sum256(v)
	if list, ok := i.taskLists[sum]; ok {
		s.Tasks = list
		return ""
	}
	items, ok := elements(v)
	if !ok {
		return "reply to registered is not understood"
	}
	n := len(items)
	for _, list := range i.taskLists {
		n += len(list)
	}
	if n > maxSettingsTasks {
		i.dropTaskLists()
		n = len(items)
		for _, list := range i.taskLists {
			n += len(list)
		}
	}
	if n > maxSettingsTasks {
		return "workers differ in too many tasks to keep the lists of all"
	}
	list := make([]RegisteredTask, 0, len(items))
	for _, item := range items {
		if t, ok := decodeRegistered(item); ok && len(t.Name) <= maxName {
			list = append(list, t)
		}
	}
	i.taskLists[sum], s.Tasks = list, list
	return ""
}

// dropTaskLists forgets the lists that no worker has any more. The caller holds mu.
func (i *Inspector) dropTaskLists() {
	used := make(map[*RegisteredTask]bool)
	for _, s := range i.settings {
		if len(s.Tasks) > 0 {
			used[&s.Tasks[0]] = true
		}
	}
	maps.DeleteFunc(i.taskLists, func(_ [sha256.Size]byte, list []RegisteredTask) bool {
		return len(list) == 0 || !used[&list[0]]
	})
}
