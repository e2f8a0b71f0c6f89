package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/api"
)

// auditable adds to the answers of the workers what an audit asks for. celery@a acknowledges late, on Redis.
func (c *workers) auditable() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, answers := range c.answers {
		conf := map[string]any{
			"task_acks_late": name == "celery@a", "task_reject_on_worker_lost": nil, "task_retry_on_worker_lost": false, "task_serializer": "json",
			"accept_content": []string{"json"}, "task_time_limit": nil, "task_ignore_result": false,
		}
		maps.Copy(conf, answers["conf"].(map[string]any))
		stats := maps.Clone(answers["stats"].(map[string]any))
		stats["broker"] = map[string]any{"transport": "redis", "transport_options": map[string]any{"visibility_timeout": 60}}
		answers["conf"], answers["stats"] = conf, stats
		answers["registered"] = []string{"billing.charge [acks_late=" + map[bool]string{true: "True", false: "False"}[name == "celery@a"] + " max_retries=3]", "mail.send"}
	}
}

func TestIdempotencyPage(t *testing.T) {
	t.Parallel()
	h, c := newWorkersWeb(t, false)
	c.auditable()
	get := func(target string) string { return words(visit(t, h, target).Body.String()) }
	eventually(t, "an audit of both workers", func() bool {
		return strings.Contains(get("/ops/workers/idempotency"), "Workers differ in task_acks_late")
	})
	for target, want := range map[string][]string{
		"/ops/workers": {"List Idempotency"},
		"/ops/workers/idempotency": {
			"Messages are acknowledged before the task runs", "task_acks_late = True", "Late acknowledgement does not cover a lost pool process",
			"Nothing ends a run before the visibility timeout", "task_time_limit = 54", "2 tasks on 1 worker: celery@a", "False on 1, True on 1",
			"Some settings are unknown. No default is assumed for them. Not reported: result_expires",
		},
		"/ops/workers/idempotency?all=1&find=MAIL": {"mail. send"},
		"/ops/workers/idempotency?find=nothing":    {"No matching tasks."},
	} {
		page := get(target)
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s has no %q:\n%s", target, w, page)
			}
		}
	}
	if page := visit(t, h, "/ops/workers/idempotency").Body.String(); !strings.Contains(page, `data-topic="/workers/idempotency"`) {
		t.Error("the page does not change by itself")
	}
}

func TestIdempotencyAuditOfTheAPI(t *testing.T) {
	t.Parallel()
	for name, readOnly := range map[string]bool{"": false, "read-only": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := newWorkersWeb(t, readOnly)
			c.auditable()
			w := visit(t, h, "/ops/api/v1/idempotency/audit")
			var got struct {
				Workers, Waiting int
				Tasks            []api.AuditedTask
				Findings         []api.Finding
				Partial          []string
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
				t.Fatalf("status %d, %v:\n%s", w.Code, err, w.Body)
			}
			causes := map[string]api.Finding{}
			for _, f := range got.Findings {
				causes[f.Cause] = f
			}
			early := causes["early-acknowledgement"]
			if got.Workers != 2 || got.Waiting != 0 || got.Partial == nil || len(got.Tasks) != 2 || early.Setting != "task_acks_late" || *early.Value != "True" {
				t.Errorf("audit = %s", w.Body)
			}
			if len(early.Queries) != 1 || !strings.HasSuffix(early.Queries[0].Query, "name:billing.charge,mail.send") || early.Total == nil {
				t.Errorf("queries = %+v", early.Queries)
			}
			if got := causes["differs-task-acks-late"].Values; len(got) != 2 {
				t.Errorf("values on which workers differ = %+v, want two", got)
			}
		})
	}
}
