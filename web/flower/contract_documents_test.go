package flower_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// documentedCall is a request of Flower's documentation with its answer. {worker} stands for a worker, {id} for a task.
type documentedCall struct {
	call

	want string // JSON. Every other answer has these keys, with values of these types, and these messages; null is any value
	own  bool   // Flower is not asked: what it answers is not the same twice
}

// TestEndToEndFlowersDocuments asks Umbel, and Flower where both can act on the same worker, what Flower's documentation asks.
// The broker is RabbitMQ.
func TestEndToEndFlowersDocuments(t *testing.T) { //nolint:tparallel // one after the other, on one worker
	t.Parallel()
	testenv.Flower(t)
	broker, management := ownVhost(t)
	s := newShop(t, broker, management)
	const scaled = "celery@worker2"
	s.run(t, nil, "-m", "celery", "-A", "shop", "worker", "-n", scaled, "--autoscale=10,3", "-E", "--without-gossip", "--without-mingle")
	s.registered(t)
	s.online(t, scaled, true)
	p := s.pair(t, "")
	const id = "91396550-c228-4111-9da4-9d88cfd5ddc6"
	first, err := ask(t.Context(), p.umbel, call{method: http.MethodPost, path: "/api/task/apply/shop.add", json: `{"args": [2, 2], "task_id": "` + id + `"}`})
	if err != nil || first.status != http.StatusOK {
		t.Fatalf("apply: %s, %v", first.line(), err)
	}
	eventually(t, "Umbel shows that the task has succeeded", func() error {
		a, err := ask(t.Context(), p.umbel, call{path: "/api/task/info/" + id})
		if err == nil && !strings.Contains(a.body, `"state": "SUCCESS"`) {
			err = errors.New(a.line())
		}
		return err
	})
	for _, c := range documentedCalls() {
		filled := strings.NewReplacer("{worker}", s.worker, "{id}", id)
		c.path, c.form, c.want = filled.Replace(c.path), filled.Replace(c.form), filled.Replace(c.want)
		t.Run(c.name, func(t *testing.T) {
			var got answer
			var err error
			if c.own || c.method == "" {
				got, err = ask(t.Context(), p.umbel, c.call)
			} else {
				got = s.compare(t, c.call)
			}
			if err != nil || got.status != http.StatusOK {
				t.Fatalf("%s, %v", got.line(), err)
			}
			want, err := decode(c.want)
			if err != nil {
				t.Fatal(err)
			}
			have, err := decode(got.body)
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range undocumented("", want, have) {
				t.Errorf("%s in %s", wrong, got.body)
			}
		})
	}
}

// undocumented returns where an answer is not as documented.
func undocumented(at string, want, have any) (wrong []string) {
	switch w := want.(type) {
	case nil:
	case *members:
		h, ok := have.(*members)
		if !ok {
			return []string{at + " is no object"}
		}
		for _, key := range w.keys {
			if value, ok := h.values[key]; !ok {
				wrong = append(wrong, at+" lacks "+key)
			} else {
				wrong = append(wrong, undocumented(at+"."+key, w.values[key], value)...)
			}
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) == 0 {
			return []string{at + " is no list with items"}
		}
		for i := range h {
			wrong = append(wrong, undocumented(fmt.Sprintf("%s[%d]", at, i), w[0], h[i])...)
		}
	default:
		if kind(want) != kind(have) || at == ".message" && want != have {
			wrong = append(wrong, fmt.Sprintf("%s is %v, not like %v", at, have, want))
		}
	}
	return wrong
}

// documentedTask is a task as Flower documents it, but for its id.
const documentedTask = `"args": "[2, 2]", "client": null, "clock": 25, "eta": null, "exception": null, "exchange": null, "expires": null, "failed": null,
	"kwargs": "{}", "name": "tasks.add", "received": 1400806241.970742, "result": "'4'", "retried": null, "retries": null, "revoked": null,
	"routing_key": null, "runtime": 2.0037889280356467, "sent": null, "started": 1400806241.972624, "state": "SUCCESS",
	"succeeded": 1400806243.975336, "timestamp": 1400806243.975336, "traceback": null, "worker": "celery@worker1"`

// documentedCalls are the requests in the documentation of Flower 2.2, with the names of tasks that there are.
func documentedCalls() []documentedCall {
	list := []documentedCall{
		{call: call{path: "/api/workers"}, want: `{"{worker}": {
			"active_queues": [{"alias": null, "auto_delete": false, "binding_arguments": null, "bindings": null, "durable": true,
				"exchange": {"arguments": null, "auto_delete": false, "delivery_mode": null, "durable": true, "name": "celery", "passive": false, "type": "direct"},
				"exclusive": false, "name": "celery", "no_ack": false, "queue_arguments": null, "routing_key": "celery"}],
			"conf": {}, "registered": ["tasks.add"],
			"stats": {"broker": {"connect_timeout": 4, "heartbeat": null, "hostname": "127.0.0.1", "insist": false, "login_method": null, "port": 5672,
				"ssl": false, "transport": "amqp", "transport_options": {}, "uri_prefix": null, "userid": "guest", "virtual_host": "/"},
				"clock": "918", "pid": 90494, "pool": {"max-concurrency": 4, "max-tasks-per-child": "N/A", "processes": [90499],
				"put-guarded-by-semaphore": false, "timeouts": [0]}, "prefetch_count": 16, "rusage": {"idrss": 0, "maxrss": 20463616,
				"stime": 0.15, "utime": 1.19}, "total": {}},
			"timestamp": 1438049204.305907}}`},
		{call: call{path: "/api/tasks"}, want: `{"{id}": {"uuid": "{id}", ` + documentedTask + `}}`},
		{call: call{path: "/api/task/types"}, want: `{"task-types": ["tasks.add"]}`},
		{call: call{path: "/api/task/info/{id}"}, want: `{"task-id": "{id}", ` + documentedTask + `}`},
		{call: call{path: "/api/task/result/{id}"}, want: `{"result": 3, "state": "SUCCESS", "task-id": "{id}"}`},
		{call: call{path: "/api/queues/length"}, want: `{"active_queues": [{"name": "celery", "messages": null}]}`},

		{call: call{method: http.MethodPost, path: "/api/task/apply/shop.add", json: `{"args": [1, 2]}`}, want: `{"state": "SUCCESS", "task-id": "{id}", "result": 3}`},
		{call: call{method: http.MethodPost, path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2]}`}, want: `{"state": "PENDING", "task-id": "{id}"}`, own: true},
		{call: call{method: http.MethodPost, path: "/api/task/send-task/shop.add", json: `{"args": [1, 2]}`}, want: `{"state": "SUCCESS", "task-id": "{id}"}`, own: true},
	}
	for _, c := range []struct{ path, form, message string }{
		{"/api/worker/pool/grow/{worker}?n=3", "", "Growing '{worker}' worker's pool by 3"},
		{"/api/worker/pool/shrink/{worker}", "", "Shrinking '{worker}' worker's pool by 1"},
		{"/api/worker/pool/autoscale/celery@worker2?min=3&max=10", "", "Autoscaling 'celery@worker2' worker (min=3, max=10)"},
		{"/api/worker/queue/add-consumer/{worker}?queue=sample-queue", "", "add consumer sample-queue"},
		{"/api/worker/queue/cancel-consumer/{worker}?queue=sample-queue", "", "no longer consuming from sample-queue"},
		{"/api/task/revoke/1480b55c-b8b2-462c-985e-24af3e9158f9?terminate=true", "", "Revoked '1480b55c-b8b2-462c-985e-24af3e9158f9'"},
		{"/api/task/timeout/shop.sleep", "soft=30&hard=100&workername={worker}", "time limits set successfully"},
		{"/api/task/rate-limit/shop.sleep", "ratelimit=200&workername={worker}", "new rate limit set successfully"},
		{"/api/task/abort/c60be250-fe52-48df-befb-ac66174076e6", "", "Aborted 'c60be250-fe52-48df-befb-ac66174076e6'"},
		{"/api/worker/pool/restart/{worker}", "", "Restarting '{worker}' worker's pool"},
		{"/api/worker/shutdown/{worker}", "", "Shutting down!"},
	} {
		list = append(list, documentedCall{
			call: call{method: http.MethodPost, path: c.path, form: c.form}, want: fmt.Sprintf(`{"message": %q}`, c.message),
			own: strings.Contains(c.path, "shutdown"),
		})
	}
	for i := range list {
		list[i].name, _, _ = strings.Cut(list[i].path, "?")
	}
	return list
}
