package settings_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/state/query"
)

// sound are settings that no rule objects to, of a worker on RabbitMQ.
func sound() map[string]string {
	return map[string]string{
		"accept_content": `["json"]`, "result_backend": `"redis://r/0"`, "result_expires": `"1 day, 0:00:00"`, "task_acks_late": "true",
		"task_acks_on_failure": "null", "task_acks_on_failure_or_timeout": "true", "task_acks_on_timeout": "null", "task_ignore_result": "false",
		"task_reject_on_worker_lost": "null", "task_retry_on_worker_lost": "true", "task_serializer": `"json"`, "task_time_limit": "600",
		"worker_cancel_long_running_tasks_on_connection_loss": "true", "worker_deduplicate_successful_tasks": "true",
		"worker_prefetch_multiplier": "1",
	}
}

// worker has the sound settings with changes to them; an empty value removes one.
func worker(name string, changes map[string]string, tasks ...settings.Task) settings.Worker {
	conf := sound()
	maps.Copy(conf, changes)
	w := settings.Worker{
		Name: name, Version: "5.7.0", Conf: map[string]json.RawMessage{}, Tasks: tasks, Transport: "amqp", Pool: "prefork", Slots: 4, Prefetch: 4,
	}
	for k, v := range conf {
		if v != "" {
			w.Conf[k] = json.RawMessage(v)
		}
	}
	return w
}

// task has attributes as a worker prints them, written as name=value. It has three retries.
func task(name string, attributes ...string) settings.Task {
	t := settings.Task{Name: name, Attributes: map[string]string{"max_retries": "3"}}
	for _, a := range attributes {
		k, v, _ := strings.Cut(a, "=")
		t.Attributes[k] = v
	}
	return t
}

// onRedis moves a worker to Redis.
func onRedis(w settings.Worker, visibility time.Duration) settings.Worker {
	w.Transport, w.VisibilityTimeout = "redis", visibility
	return w
}

func causes(r settings.Report) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, f.Cause)
	}
	return list
}

func TestRules(t *testing.T) {
	t.Parallel()
	const late = "acks_late=True"
	ran := func(p99, longest time.Duration) settings.Observed {
		return settings.Observed{Runs: 100, P99: p99, Longest: longest}
	}
	ahead := func(d time.Duration) settings.Observed { return settings.Observed{Delay: d} }
	old := func(w settings.Worker) settings.Worker { w.Version = "5.6.3"; return w }
	threads := func(w settings.Worker) settings.Worker { w.Pool = "threads"; return w }
	reserving := func(w settings.Worker) settings.Worker { w.Prefetch = 16; return w }
	limited := map[string]string{"task_time_limit": "29"}
	for name, test := range map[string]struct {
		worker   settings.Worker
		observed settings.Observed
		want     []string
		value    string // to set, of the first
		risk     settings.Risk
	}{
		"sound":                      {worker: worker("w", nil, task("a"))},
		"no tasks":                   {worker: worker("w", map[string]string{"task_acks_late": "false"})},
		"acknowledged early":         {worker: worker("w", map[string]string{"task_acks_late": "false"}, task("a")), want: []string{"early-acknowledgement"}, value: "True", risk: settings.Possible},
		"the class decides":          {worker: worker("w", nil, task("a", "acks_late=False")), want: []string{"early-acknowledgement"}},
		"the class corrects":         {worker: worker("w", map[string]string{"task_acks_late": "false"}, task("a", late))},
		"acks_late is not reported":  {worker: worker("w", map[string]string{"task_acks_late": ""}, task("a"))},
		"worker lost":                {worker: worker("w", map[string]string{"task_retry_on_worker_lost": "false"}, task("a")), want: []string{"worker-lost"}, value: "True"},
		"worker lost, no process":    {worker: threads(worker("w", map[string]string{"task_retry_on_worker_lost": "false"}, task("a")))},
		"worker lost, not known":     {worker: worker("w", map[string]string{"task_retry_on_worker_lost": ""}, task("a"))},
		"worker lost, before 5.7":    {worker: old(worker("w", map[string]string{"task_retry_on_worker_lost": ""}, task("a"))), want: []string{"worker-lost"}},
		"rejected":                   {worker: worker("w", map[string]string{"task_retry_on_worker_lost": "false", "task_reject_on_worker_lost": "true"}, task("a")), want: []string{"endless-redelivery"}},
		"rejected by the class":      {worker: worker("w", map[string]string{"task_retry_on_worker_lost": "false"}, task("a", "reject_on_worker_lost=True")), want: []string{"endless-redelivery"}},
		"retried takes precedence":   {worker: worker("w", map[string]string{"task_reject_on_worker_lost": "true"}, task("a"))},
		"retried without end":        {worker: worker("w", nil, settings.Task{Name: "a", Attributes: map[string]string{"acks_late": "True"}}), want: []string{"endless-retries"}},
		"retry before 5.7":           {worker: old(worker("w", nil, task("a", "retry_on_worker_lost=True"))), want: []string{"retry-unsupported", "worker-lost"}},
		"failure discarded":          {worker: worker("w", map[string]string{"task_acks_on_failure": "false"}, task("a")), want: []string{"failure-discarded"}, value: "True"},
		"both discarded":             {worker: worker("w", map[string]string{"task_acks_on_failure_or_timeout": "false"}, task("a")), want: []string{"failure-discarded", "timeout-requeued"}},
		"both discarded, before 5.7": {worker: old(worker("w", map[string]string{"task_acks_on_failure_or_timeout": "false", "task_acks_on_failure": "", "task_acks_on_timeout": "", "task_reject_on_worker_lost": "true"}, task("a"))), want: []string{"endless-redelivery", "failure-discarded", "timeout-requeued"}},
		"timeout requeued":           {worker: worker("w", map[string]string{"task_acks_on_timeout": "false"}, task("a")), want: []string{"timeout-requeued"}},
		"timeout without a limit":    {worker: worker("w", map[string]string{"task_acks_on_timeout": "false", "task_time_limit": "null"}, task("a"))},
		"connection loss":            {worker: worker("w", map[string]string{"worker_cancel_long_running_tasks_on_connection_loss": "false"}, task("a")), want: []string{"connection-loss"}, value: "True"},
		"no deduplication":           {worker: worker("w", map[string]string{"worker_deduplicate_successful_tasks": "false"}, task("a")), want: []string{"no-deduplication"}},
		"result ignored":             {worker: worker("w", nil, task("a", "ignore_result=True")), want: []string{"result-ignored"}},
		"results expire":             {worker: onRedis(worker("w", map[string]string{"result_expires": "1800"}, task("a")), 0), want: []string{"result-expires"}, value: "7200"},
		"results never expire":       {worker: onRedis(worker("w", map[string]string{"result_expires": "null"}, task("a")), 0)},
		"results are not stored":     {worker: onRedis(worker("w", map[string]string{"result_expires": "1800", "result_backend": "null"}, task("a")), 0)},
		"pickled":                    {worker: worker("w", map[string]string{"accept_content": `["json","pickle"]`}, task("a", "serializer=pickle")), want: []string{"pickled-arguments"}},
		"pickled and refused":        {worker: worker("w", nil, task("a", "serializer=pickle")), want: []string{"serializer-refused", "pickled-arguments"}, value: "['json', 'pickle']", risk: settings.Exceeded},
		"pickled replies":            {worker: settings.Worker{Name: "w", Pickles: true}, want: []string{"pickled-arguments"}},
		"accepted by content type":   {worker: worker("w", map[string]string{"accept_content": `["application/json"]`}, task("a"))},
		"runs outlast visibility":    {worker: onRedis(worker("w", limited, task("a")), 30*time.Second), observed: ran(20*time.Second, 50*time.Second), want: []string{"visibility-run-time"}, value: "{'visibility_timeout': 120}", risk: settings.Exceeded},
		"runs come close":            {worker: onRedis(worker("w", limited, task("a")), 30*time.Second), observed: ran(15500*time.Millisecond, 16*time.Second), want: []string{"visibility-run-time"}, risk: settings.Possible},
		"runs are short":             {worker: onRedis(worker("w", limited, task("a")), 30*time.Second), observed: ran(2*time.Second, 3*time.Second)},
		"long runs acknowledged":     {worker: onRedis(worker("w", nil, task("a", "acks_late=False")), time.Minute), observed: ran(time.Hour/10, time.Hour/10), want: []string{"early-acknowledgement"}},
		"ETA beyond visibility":      {worker: onRedis(worker("w", nil, task("a", "acks_late=False")), 0), observed: ahead(3 * time.Hour), want: []string{"visibility-eta", "early-acknowledgement"}, value: "{'visibility_timeout': 21600}", risk: settings.Exceeded},
		"ETA within visibility":      {worker: onRedis(worker("w", nil, task("a")), 0), observed: ahead(time.Hour)},
		"reserved beyond visibility": {worker: reserving(onRedis(worker("w", nil, task("a")), time.Hour)), observed: ran(16*time.Minute, 20*time.Minute), want: []string{"time-limit", "visibility-prefetch"}},
		"reserved, one run fewer":    {worker: reserving(onRedis(worker("w", nil, task("a", "acks_late=False", "time_limit=7200")), time.Hour)), observed: ran(16*time.Minute, 20*time.Minute), want: []string{"early-acknowledgement"}},
		"nothing ends a run":         {worker: onRedis(worker("w", map[string]string{"task_time_limit": "null"}, task("a")), time.Minute), want: []string{"visibility-no-limit"}, value: "54"},
		"nothing ends it in time":    {worker: onRedis(worker("w", nil, task("a", "time_limit=60")), time.Minute), want: []string{"visibility-no-limit"}},
		"runs outlast RabbitMQ":      {worker: worker("w", map[string]string{"task_time_limit": "null"}, task("a")), observed: ran(20*time.Minute, 40*time.Minute), want: []string{"consumer-timeout-run-time"}, value: "7200000", risk: settings.Exceeded},
		"ETA beyond RabbitMQ":        {worker: worker("w", nil, task("a")), observed: ahead(31 * time.Minute), want: []string{"consumer-timeout-eta"}, risk: settings.Exceeded},
		"runs close to the limit":    {worker: worker("w", nil, task("a")), observed: ran(9*time.Minute, 9*time.Minute), want: []string{"time-limit"}, value: "1080"},
		"a limit of the command line": {worker: func() settings.Worker {
			w := worker("w", map[string]string{"task_time_limit": "null"}, task("a"))
			w.TimeLimit = 10 * time.Minute
			return w
		}(), observed: ran(9*time.Minute, 9*time.Minute), want: []string{"time-limit"}},
		"it did not reply": {worker: settings.Worker{Name: "w", Why: []string{"no reply"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := settings.Judge(settings.Cluster{Workers: []settings.Worker{test.worker}, Tasks: map[string]settings.Observed{"a": test.observed}})
			if diff := cmp.Diff(append([]string{}, test.want...), causes(r)); diff != "" {
				t.Fatalf("causes (-want +got):\n%s", diff)
			}
			for _, f := range r.Findings {
				if f.Consequence == "" || f.Setting == "" || f.Cost == "" || f.Title == "" || f.Value == "" || len(f.Workers) != 1 {
					t.Errorf("finding %s is incomplete: %+v", f.Cause, f)
				}
				if _, err := query.Parse(f.Query); err != nil {
					t.Errorf("query of %s: %v", f.Cause, err)
				}
			}
			if test.value != "" && r.Findings[0].Value != test.value {
				t.Errorf("value = %s, want %s", r.Findings[0].Value, test.value)
			}
			if test.risk != "" && r.Findings[0].Risk != test.risk {
				t.Errorf("risk = %s, want %s", r.Findings[0].Risk, test.risk)
			}
		})
	}
}

func TestShortestVisibilityTimeoutCounts(t *testing.T) {
	t.Parallel()
	tasks := []settings.Task{task("a")}
	r := settings.Judge(settings.Cluster{
		Workers: []settings.Worker{onRedis(worker("patient", nil, tasks...), 2*time.Hour), onRedis(worker("hasty", nil), time.Minute)},
		Tasks:   map[string]settings.Observed{"a": {Runs: 9, P99: 50 * time.Second, Longest: 90 * time.Second}},
	})
	want := []string{"visibility-run-time", "visibility-no-limit", "differs-visibility-timeout"}
	if diff := cmp.Diff(want, causes(r)); diff != "" {
		t.Fatalf("causes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"patient"}, r.Findings[0].Workers); diff != "" {
		t.Errorf("workers that run it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]settings.TaskFact{{Name: "a", Detail: "p99 of run times 50s, longest 1m30s, timeout 1m"}}, r.Findings[0].Tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

func TestWorkersThatDisagree(t *testing.T) {
	t.Parallel()
	early := map[string]string{"task_acks_late": "false"}
	for name, test := range map[string]struct {
		workers []settings.Worker
		want    []string
	}{
		"on a setting": {[]settings.Worker{worker("a", nil), worker("b", early)}, []string{"differs-task-acks-late"}},
		"on a setting, and so on its tasks": {
			[]settings.Worker{worker("a", nil, task("t")), worker("b", early, task("t"))}, []string{"early-acknowledgement", "differs-task-acks-late"},
		},
		"on a task alone": {
			[]settings.Worker{worker("a", nil, task("t")), worker("b", nil, task("t", "acks_late=False"))}, []string{"early-acknowledgement", "attribute-acks-late"},
		},
		"one does not report it":   {[]settings.Worker{worker("a", nil), worker("b", map[string]string{"task_acks_late": ""})}, []string{}},
		"on different tasks":       {[]settings.Worker{worker("a", nil, task("t")), worker("b", nil, task("u", "ignore_result=True"))}, []string{"result-ignored"}},
		"on how tasks are sent":    {[]settings.Worker{worker("a", nil, task("t")), worker("b", map[string]string{"accept_content": `["yaml"]`, "task_serializer": `"yaml"`}, task("t"))}, []string{"serializer-refused", "differs-accept-content", "differs-task-serializer"}},
		"an expiry in other words": {[]settings.Worker{worker("a", nil), worker("b", map[string]string{"result_expires": "86400.0"})}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, causes(settings.Judge(settings.Cluster{Workers: test.workers}))); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsUnknownIsSaid(t *testing.T) {
	t.Parallel()
	silent := settings.Worker{Name: "silent", Why: []string{"No reply in 2 s."}}
	masked := worker("masked", map[string]string{"task_acks_late": "", "task_retry_on_worker_lost": ""}, task("a"))
	old := worker("old", map[string]string{"task_retry_on_worker_lost": "", "task_acks_on_failure": "", "task_acks_on_timeout": ""})
	old.Version = "5.4.0"
	r := settings.Judge(settings.Cluster{Workers: []settings.Worker{silent, masked, old}})
	want := []settings.Unknown{
		{Why: "No reply in 2 s.", Workers: []string{"silent"}},
		{Why: "Not reported: task_acks_late, task_retry_on_worker_lost.", Workers: []string{"masked"}},
	}
	if diff := cmp.Diff(want, r.Unknown); diff != "" {
		t.Errorf("unknown (-want +got):\n%s", diff)
	}
	if len(r.Findings) != 0 {
		t.Errorf("findings from what is not known: %v", causes(r))
	}
	if got := r.Tasks[0].Cells[0]; len(got.Values) != 0 {
		t.Errorf("acks_late of a worker that does not report it = %v, want unknown", got)
	}
}

func TestTableShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	r := settings.Judge(settings.Cluster{Workers: []settings.Worker{
		worker("a", nil, task("t")), worker("b", nil, task("t", "acks_late=False")), worker("c", nil, task("t")),
	}})
	at := slices.Index(settings.Columns(), "acks_late")
	want := settings.Cell{Values: []settings.Value{{Value: "True", Workers: []string{"a", "c"}}, {Value: "False", Workers: []string{"b"}}}, Overrides: true}
	if diff := cmp.Diff(want, r.Tasks[0].Cells[at]); diff != "" {
		t.Errorf("cell (-want +got):\n%s", diff)
	}
	if got, want := r.Tasks[0].Cells[at].String(), "True on 2, False on 1"; got != want {
		t.Errorf("cell = %q, want %q", got, want)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`86400`: 24 * time.Hour, `3600.5`: 3600500 * time.Millisecond, `null`: 0, `"1 day, 0:00:00"`: 24 * time.Hour,
		`"2 days, 1:02:03.500000"`: 49*time.Hour + 2*time.Minute + 3500*time.Millisecond, `"0:30:00"`: 30 * time.Minute, `"60"`: time.Minute,
		`"soon"`: -1, `true`: -1, `-5`: -1, `"1 day"`: -1, `"99999999 days, 0:00:00"`: -1, `1e99`: -1, ``: -1,
	} {
		got, ok := settings.Expiry(json.RawMessage(text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("expiry of %s = %v, want %v", text, got, want)
		}
	}
}

// TestLargeCluster judges 1,000 workers with 500 tasks each within the time of a page.
func TestLargeCluster(t *testing.T) {
	t.Parallel()
	c := settings.Cluster{Tasks: map[string]settings.Observed{}}
	var tasks []settings.Task
	for i := range 500 {
		tasks = append(tasks, task(fmt.Sprintf("app.task%d", i), "acks_late=False"))
	}
	for i := range 1_000 {
		c.Workers = append(c.Workers, worker(fmt.Sprintf("w%d", i), map[string]string{"worker_prefetch_multiplier": fmt.Sprint(i % 10)}, tasks...))
		c.Workers[i].Tasks = tasks
	}
	r := settings.Judge(c)
	if len(r.Tasks) != 500 || len(r.Findings) != 2 || len(r.Findings[0].Workers) != 1_000 || len(r.Findings[1].Values) != 10 {
		t.Errorf("report has %d tasks and %v, want 500 tasks and two findings", len(r.Tasks), causes(r))
	}
}

func BenchmarkJudge(b *testing.B) {
	var c settings.Cluster
	var tasks []settings.Task
	for i := range 500 {
		tasks = append(tasks, task(fmt.Sprintf("app.task%d", i), "acks_late=False"))
	}
	for i := range 1_000 {
		c.Workers = append(c.Workers, worker(fmt.Sprintf("w%d", i), map[string]string{"worker_prefetch_multiplier": fmt.Sprint(i % 10)}, tasks...))
		c.Workers[i].Tasks = tasks
	}
	for b.Loop() {
		settings.Judge(c)
	}
}
