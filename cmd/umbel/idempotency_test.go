package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// settingsAudit is the audit of the API, as far as the tests look at it.
type settingsAudit struct {
	Workers  int `json:"workers"`
	Findings []struct {
		Cause    string `json:"cause"`
		Severity string `json:"severity"`
		Value    string `json:"value"`
		Total    int    `json:"total"`
		Tasks    []struct {
			Name string `json:"name"`
		} `json:"tasks"`
		Queries []struct {
			Query string `json:"q"`
		} `json:"queries"`
	} `json:"findings"`
	Unknown []struct {
		Why string `json:"why"`
	} `json:"unknown"`
}

// tasks are those that a finding names, with its severity; an error if there is no such finding.
func (a settingsAudit) tasks(cause string) (names []string, severity string, err error) {
	for _, f := range a.Findings {
		if f.Cause != cause {
			continue
		}
		for _, t := range f.Tasks {
			names = append(names, t.Name)
		}
		return names, f.Severity, nil
	}
	return nil, "", fmt.Errorf("no finding %s among %+v", cause, a.Findings)
}

// TestEndToEndVisibilityTimeout has two real workers run one task at once, because its message is visible again before it
// has ended.
func TestEndToEndVisibilityTimeout(t *testing.T) {
	t.Parallel()
	broker := ownRedis(t)
	c := newCluster(t, broker)
	c.env = append(c.env, "VISIBILITY_TIMEOUT=1")
	d := start(t, nil, "serve", "--broker-url", broker)
	d.connected(t)
	for _, node := range []string{"a@test", "b@test"} {
		c.work(t, node, "celery", "-E", "-c", "1")
	}
	page := openTab(t, testbrowser.Open(t), d.url+"workers/idempotency")
	page.until(t, `document.querySelector("#finding-visibility-no-limit") !== null`)

	g := newGate(t)
	id := c.call(t, "hold_late", string(g))
	eventually(t, timeout, func() error {
		got, _ := api[task](t, d, "tasks/"+id)
		if len(got.Executions) < 2 || !got.Redelivered || got.Executions[1].State != "STARTED" {
			return fmt.Errorf("task = %+v, want it running twice", got)
		}
		return nil
	})
	g.open(t)
	eventually(t, timeout, func() error {
		got, _ := api[settingsAudit](t, d, "idempotency/audit")
		names, severity, err := got.tasks("visibility-run-time")
		if err == nil && (severity != "happened" || !slices.Equal(names, []string{"tasks.hold_late"})) {
			err = fmt.Errorf("finding is %s for %v", severity, names)
		}
		return err
	})
	got, _ := api[settingsAudit](t, d, "idempotency/audit")
	for _, f := range got.Findings {
		if f.Cause != "visibility-run-time" {
			continue
		}
		if f.Total != 1 || len(f.Queries) != 1 || !strings.HasPrefix(f.Value, "{'visibility_timeout': ") {
			t.Errorf("finding = %+v, want one task and a timeout to set", f)
		}
	}
	page.until(t, `!!document.querySelector("#finding-visibility-run-time .severity")?.textContent.includes("Has happened")`)
	page.until(t, `document.querySelector("#finding-visibility-run-time").textContent.includes("hold_late")`)
	page.until(t, `document.querySelector("#finding-visibility-run-time a[href*=redelivered]").textContent.includes("1 task")`)
}

// TestEndToEndAuditOfSettings audits a real worker on each broker, of which everything is known.
func TestEndToEndAuditOfSettings(t *testing.T) {
	t.Parallel()
	for name, own := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := own(t)
			c := newCluster(t, broker)
			d := start(t, nil, "serve", "--broker-url", broker, "--read-only")
			d.connected(t)
			c.work(t, "w1@test", "celery", "-E")
			eventually(t, timeout, func() error {
				got, _ := api[settingsAudit](t, d, "idempotency/audit")
				late, _, err := got.tasks("worker-lost")
				early, _, missing := got.tasks("early-acknowledgement")
				_, _, redis := got.tasks("visibility-no-limit")
				switch {
				case err != nil:
					return err
				case missing != nil:
					return missing
				case !slices.Equal(late, []string{"tasks.hold_idempotently", "tasks.hold_late"}) || !slices.Contains(early, "tasks.add") || slices.Contains(early, "tasks.hold_late"):
					return fmt.Errorf("acknowledged late are %v, early %v", late, early)
				case (redis == nil) != (name == "Redis"):
					return fmt.Errorf("on %s: %w", name, redis)
				case len(got.Unknown) > 0:
					return fmt.Errorf("unknown of a real worker: %+v", got.Unknown)
				}
				return nil
			})
		})
	}
}
