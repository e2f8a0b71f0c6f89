package flower_test

import (
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndFlowersActions asks Flower and Umbel, which watch one worker, to change the same.
func TestEndToEndFlowersActions(t *testing.T) { //nolint:tparallel // one after the other, on one worker
	t.Parallel()
	testenv.Flower(t)
	s := newShop(t, ownRedis(t), "")
	s.registered(t)
	for _, c := range actingCalls() {
		c.method = http.MethodPost
		t.Run(c.name, func(t *testing.T) { s.compare(t, c) })
	}
	for _, c := range resultCalls() {
		t.Run(c.name, func(t *testing.T) { s.compare(t, c) })
	}
	p := s.pair(t, "")
	if byFlower, byUmbel := s.client(t, p.flower), s.client(t, p.umbel); byFlower != byUmbel || !strings.Contains(byUmbel, "result 200 42 True") {
		t.Errorf("a client got of Umbel\n%s\nand of Flower\n%s", byUmbel, byFlower)
	}
}

// client runs client.py and returns what it prints.
func (s *shop) client(t *testing.T, url string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.python, filepath.Join("testdata", "client.py"), url, s.worker)
	cmd.Env = s.env
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("client of %s: %v\n%s", url, err, output)
	}
	return string(output)
}

// registered waits until both have inspected the worker.
func (s *shop) registered(t *testing.T) {
	t.Helper()
	p := s.pair(t, "")
	s.online(t, s.worker, true)
	for _, url := range []string{p.flower, p.umbel} {
		eventually(t, url+" grows a pool", func() error {
			answer, err := ask(t.Context(), url, call{method: http.MethodPost, path: "/api/worker/pool/grow/" + s.worker})
			if err == nil && answer.status != http.StatusOK {
				err = errors.New(answer.line())
			}
			return err
		})
	}
}

// actingCalls are the POST requests that a worker without autoscaling survives.
func actingCalls() []call {
	list := []call{
		{name: "grow", path: "/api/worker/pool/grow/{worker}"},
		{name: "grow by 2", path: "/api/worker/pool/grow/{worker}?n=2"},
		{name: "grow by a form", path: "/api/worker/pool/grow/{worker}", form: "n=1"},
		{name: "grow an escaped name", path: "/api/worker/pool/grow/w1%40shop"},
		{name: "shrink", path: "/api/worker/pool/shrink/{worker}?n=2"},
		{name: "grow by a word", path: "/api/worker/pool/grow/{worker}?n=x"},
		{name: "grow by nothing", path: "/api/worker/pool/grow/{worker}?n="},
		{name: "shrink by a word", path: "/api/worker/pool/shrink/{worker}?n=x"},
		{name: "grow by 0", path: "/api/worker/pool/grow/{worker}?n=0", differs: "harm", umbel: "403 Failed to grow 'w1@shop' worker's pool: argument n of pool_grow must be a whole number from 1 to 1000"},
		{name: "autoscale without autoscaling", path: "/api/worker/pool/autoscale/{worker}?min=1&max=3"},
		{name: "autoscale without limits", path: "/api/worker/pool/autoscale/{worker}"},
		{name: "autoscale without a maximum", path: "/api/worker/pool/autoscale/{worker}?min=1"},
		{name: "autoscale to a word", path: "/api/worker/pool/autoscale/{worker}?min=1&max=many"},
		{name: "restart a pool", path: "/api/worker/pool/restart/{worker}"},
		{name: "add a consumer", path: "/api/worker/queue/add-consumer/{worker}", form: "queue=extra"},
		{name: "add it again", path: "/api/worker/queue/add-consumer/{worker}?queue=extra"},
		{name: "add a consumer of nothing", path: "/api/worker/queue/add-consumer/{worker}"},
		{name: "add a consumer of an empty name", path: "/api/worker/queue/add-consumer/{worker}?queue="},
		{name: "add a consumer with signs of HTML", path: "/api/worker/queue/add-consumer/{worker}", form: "queue=a%26b", differs: "names", umbel: `200 {"message": "add consumer a&b"}`},
		{name: "cancel a consumer", path: "/api/worker/queue/cancel-consumer/{worker}?queue=extra"},
		{name: "cancel an unknown consumer", path: "/api/worker/queue/cancel-consumer/{worker}?queue=never"},
		{name: "cancel a consumer of nothing", path: "/api/worker/queue/cancel-consumer/{worker}"},

		{name: "time limits", path: "/api/task/timeout/shop.add", form: "workername=w1%40shop&soft=30&hard=100"},
		{name: "a soft time limit", path: "/api/task/timeout/shop.add?workername={worker}&soft=30.5"},
		{name: "no time limits", path: "/api/task/timeout/shop.add?workername={worker}"},
		{name: "time limit of a word", path: "/api/task/timeout/shop.add?workername={worker}&soft=x"},
		{name: "time limits of an unknown task", path: "/api/task/timeout/shop.nothing?workername={worker}&soft=3"},
		{name: "time limits on an unknown worker", path: "/api/task/timeout/shop.add?workername=nobody&soft=3"},
		{name: "time limits on no worker", path: "/api/task/timeout/shop.add?soft=3"},
		{name: "rate limit", path: "/api/task/rate-limit/shop.add", form: "workername=w1%40shop&ratelimit=11/m"},
		{name: "rate limit of a number", path: "/api/task/rate-limit/shop.add?workername={worker}&ratelimit=200"},
		{name: "rate limit that is none", path: "/api/task/rate-limit/shop.add?workername={worker}&ratelimit=garbage", differs: "reason", umbel: "403 Failed to set rate limit: 'argument rate_limit of rate_limit must be a rate such as 10/m, 5/s or 2/h, or 0 for no limit'"},
		{name: "no rate limit", path: "/api/task/rate-limit/shop.add?workername={worker}"},
		{name: "rate limit of an unknown task", path: "/api/task/rate-limit/shop.nothing?workername={worker}&ratelimit=1"},
		{name: "rate limit on an unknown worker", path: "/api/task/rate-limit/shop.add?workername=nobody&ratelimit=1"},
		{name: "lift the rate limit", path: "/api/task/rate-limit/shop.add?workername={worker}&ratelimit=0", differs: "rate of 0", umbel: `200 {"message": "rate limit disabled successfully"}`},

		{name: "revoke", path: "/api/task/revoke/no-such-task"},
		{name: "revoke by force", path: "/api/task/revoke/no-such-task?terminate=true&signal=SIGKILL"},
		{name: "revoke by a short signal", path: "/api/task/revoke/no-such-task", form: "terminate=1&signal=KILL"},
		{name: "revoke perhaps", path: "/api/task/revoke/no-such-task?terminate=2"},
		{name: "revoke by an unknown signal", path: "/api/task/revoke/x?terminate=1&signal=SIGFOO", differs: "harm", umbel: "400 argument signal of revoke must be one of SIGTERM,"},

		{name: "apply", path: "/api/task/apply/shop.add", json: `{"args": [1, 2]}`},
		{name: "apply with keywords", path: "/api/task/apply/shop.echo", json: `{"args": ["ü", null, 1.5, "</a>"], "kwargs": {"a": [true]}}`},
		{name: "apply what fails", path: "/api/task/apply/shop.fail", json: `{"args": ["it's gone"]}`},
		{name: "apply with a timeout", path: "/api/task/apply/shop.sleep", json: `{"args": [3], "timeout": 0.2}`},
		{name: "apply with a wrong timeout", path: "/api/task/apply/shop.add", json: `{"args": [1], "timeout": "soon"}`},
		{name: "apply what nobody has", path: "/api/task/apply/shop.nothing", json: `{"args": [1, 2]}`},
		{name: "apply what is no JSON", path: "/api/task/apply/shop.add", json: `{"args": [1, 2]`, differs: "JSON", umbel: "400 The body is not JSON."},
		{name: "apply an array", path: "/api/task/apply/shop.add", json: `[1, 2]`},
		{name: "apply arguments that are no array", path: "/api/task/apply/shop.add", json: `{"args": "12"}`},
		{name: "apply at a wrong time", path: "/api/task/apply/shop.add", json: `{"args": [1, 2], "eta": "tomorrow"}`},
		{name: "apply after a word", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "countdown": "soon"}`},
		{name: "apply until a word", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "expires": "soon"}`},
		{name: "apply later", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "countdown": 3600}`},
		{name: "apply later, as text", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "countdown": "3600"}`},
		{name: "apply at a time", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "eta": "2099-01-02 03:04:05.000006"}`, differs: "ten years", umbel: "400 eta must lie within ten years"},
		{name: "apply with options", path: "/api/task/async-apply/shop.add", json: `{"args": [1, 2], "countdown": 3600, "queue": "celery", "priority": 3, "expires": 7200, "time_limit": 60, "soft_time_limit": 30.5, "headers": {"tenant": "a"}, "ignore_result": true, "retry": true, "compression": "gzip", "bogus_opt": 1}`},
		{name: "apply asynchronously what nobody has", path: "/api/task/async-apply/shop.nothing", json: `{}`},
		{name: "send what nobody has", path: "/api/task/send-task/shop.nothing", json: `{"args": [1], "queue": "nobody"}`},
		{name: "send without a body", path: "/api/task/send-task/shop.echo", json: `{"countdown": 3600}`},
		{name: "send at an ISO time", path: "/api/task/send-task/shop.add", json: `{"args": [1, 2], "eta": "2027-01-02T03:04:05+00:00"}`},
		{name: "send an array", path: "/api/task/send-task/shop.add", json: `[]`},
		{name: "send arguments that are no array", path: "/api/task/send-task/shop.add", json: `{"args": {}}`},
		{name: "send as a form, which is JSON", path: "/api/task/send-task/shop.echo", form: `{"countdown": 3600}`},
		{name: "send keywords that are no object", path: "/api/task/send-task/shop.add", json: `{"kwargs": [1]}`, differs: "400", umbel: "400 kwargs must be an object"},
		{name: "send after a word", path: "/api/task/send-task/shop.add", json: `{"countdown": "x"}`, differs: "400", umbel: "400 Invalid option"},

		{name: "abort", path: "/api/task/abort/no-such-task"},
	}
	for _, path := range []string{
		"/api/worker/shutdown/", "/api/worker/pool/restart/", "/api/worker/pool/grow/", "/api/worker/pool/shrink/", "/api/worker/pool/autoscale/",
		"/api/worker/queue/add-consumer/", "/api/worker/queue/cancel-consumer/",
	} {
		list = append(list, call{name: "unknown worker " + path, path: path + "nobody@nowhere"})
	}
	return list
}

// actingPaths are the paths that change something.
func actingPaths() []string {
	return []string{
		"/api/worker/shutdown/w1@shop", "/api/worker/pool/restart/w1@shop", "/api/worker/pool/grow/w1@shop", "/api/worker/pool/shrink/w1@shop",
		"/api/worker/pool/autoscale/w1@shop", "/api/worker/queue/add-consumer/w1@shop", "/api/worker/queue/cancel-consumer/w1@shop",
		"/api/task/revoke/x", "/api/task/timeout/shop.add", "/api/task/rate-limit/shop.add", "/api/task/apply/shop.add",
		"/api/task/async-apply/shop.add", "/api/task/send-task/shop.add", "/api/task/abort/x",
	}
}

// resultCalls read results.
func resultCalls() []call {
	return []call{
		{name: "result of an unknown task", path: "/api/task/result/nothing"},
		{name: "result of an aborted task", path: "/api/task/result/no-such-task"},
		{name: "no result in time", path: "/api/task/result/nothing?timeout=0.2"},
		{name: "result without a wait", path: "/api/task/result/nothing?timeout=0"},
		{name: "result after a word", path: "/api/task/result/nothing?timeout=abc"},
	}
}
