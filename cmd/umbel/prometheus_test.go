package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
)

func TestPromtoolAcceptsRulesAndMetrics(t *testing.T) {
	t.Parallel()
	testenv.Prometheus(t)
	for _, args := range [][]string{{"check", "rules", "rules.yml"}, {"test", "rules", "rules_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// prometheus is a Prometheus that scrapes targets each second.
type prometheus struct {
	*process
	url string
}

// scrapeBy starts a Prometheus for targets by job.
func scrapeBy(tb testing.TB, targets map[string]string, flags ...string) prometheus {
	tb.Helper()
	program, dir := testenv.Prometheus(tb), tb.TempDir()
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"
	for job, target := range targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: ['%s']}]}\n", job, target)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	address := freeAddress(tb)
	args := append([]string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address}, flags...)
	p := prometheus{spawn(tb, command(nil, program, args...)), "http://" + address}
	eventually(tb, timeout, func() error {
		status, _, err := fetch(tb.Context(), p.url+"/-/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	return p
}

// freeAddress returns an address on loopback that nobody listened on just now.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// query returns the values of an expression now, by the labels asked for.
func (p prometheus) query(ctx context.Context, expr string, labels ...string) (map[string]float64, error) {
	_, body, err := fetch(ctx, p.url+"/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	if answer.Status != "success" {
		return nil, errors.New(expr + ": " + answer.Error)
	}
	values := make(map[string]float64)
	for _, r := range answer.Data.Result {
		var key []string
		for _, name := range labels {
			key = append(key, r.Metric[name])
		}
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		values[strings.Join(key, " ")] += v
	}
	return values, nil
}

// flowerQueries are those of the Grafana board and of the alerts that Flower brings.
func flowerQueries() []string {
	return []string{
		`flower_worker_online{worker=~".*"} == 1`,
		`sum by (task) (increase(flower_events_total{type=~"task-(succeeded|failed)"}[1m]))`,
		`sum by (task) (increase(flower_events_total{type="task-failed"}[1m]))`,
		`sum by (task) (increase(flower_events_total{type="task-retried"}[1m]))`,
		`flower_worker_number_of_currently_executing_tasks`,
		`sum by (worker) (flower_worker_prefetched_tasks)`,
		`avg by (task) (flower_task_prefetch_time_seconds)`,
		`sum by (task) (rate(flower_task_runtime_seconds_sum[1m])) / sum by (task) (rate(flower_task_runtime_seconds_count[1m]))`,
		`histogram_quantile(0.95, sum by (task, le) (rate(flower_task_runtime_seconds_bucket[1m])))`,
		`count by (worker) (flower_worker_online)`,
		`count by (task) (flower_events_total)`,
	}
}

// TestEndToEndPrometheus scrapes Umbel and Flower beside the same worker, by the text formats and by Protocol Buffers.
func TestEndToEndPrometheus(t *testing.T) {
	t.Parallel()
	c := newCluster(t, ownRedis(t))
	c.work(t, "w1@test", "celery", "-P", "prefork", "-c", "2", "-E")
	d := start(t, c.env, "serve")
	d.await(t, "broker connected")
	flower := c.flower(t)
	targets := map[string]string{"umbel": strings.Trim(strings.TrimPrefix(d.url, "http://"), "/"), "flower": flower}
	plain := scrapeBy(t, targets, "--enable-feature=exemplar-storage")
	native := scrapeBy(t, targets, "--enable-feature=native-histograms,exemplar-storage")
	for range 3 {
		c.call(t, "add", 1, 2)
		c.call(t, "boom", "no")
		c.call(t, "flaky", 1, 0.1)
	}
	answer := func(p prometheus, expr string, labels ...string) map[string]float64 {
		t.Helper()
		v, err := p.query(t.Context(), expr, labels...)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	events := map[string]float64{
		"tasks.add task-sent": 3, "tasks.add task-received": 3, "tasks.add task-started": 3, "tasks.add task-succeeded": 3,
		"tasks.boom task-sent": 3, "tasks.boom task-received": 3, "tasks.boom task-started": 3, "tasks.boom task-failed": 3,
		"tasks.flaky task-sent": 6, "tasks.flaky task-received": 6, "tasks.flaky task-started": 6, "tasks.flaky task-retried": 3, "tasks.flaky task-succeeded": 3,
	}
	for _, p := range []prometheus{plain, native} {
		for _, job := range []string{"umbel", "flower"} {
			eventually(t, timeout, func() error {
				got, err := p.query(t.Context(), `flower_events_total{job="`+job+`"}`, "task", "type")
				if diff := cmp.Diff(events, got); err == nil && diff != "" {
					return fmt.Errorf("events as %s counts them (-want +got):\n%s", job, diff)
				}
				return err
			})
		}
		for _, expr := range flowerQueries() {
			eventually(t, timeout, func() error { // rates are known from the second scrape on
				got, err := p.query(t.Context(), expr)
				if err == nil && len(got) == 0 {
					return fmt.Errorf("nothing for %s", expr)
				}
				return err
			})
		}
		for title, queries := range grafanaQueries(t) {
			for _, expr := range queries {
				needed := strings.HasPrefix(title, "variable") || strings.Contains(expr, "histogram_quantile")
				eventually(t, timeout, func() error {
					got, err := p.query(t.Context(), expr)
					if err == nil && needed && len(got) == 0 {
						return fmt.Errorf("%s: nothing for %s", title, expr)
					}
					return err
				})
			}
		}
	}
	compareFlower(t, answer, plain)
	eventually(t, timeout, func() error { // from native buckets
		got, err := native.query(t.Context(), `histogram_quantile(0.5, umbel_task_run_seconds{task="tasks.add"})`, "task")
		if v := got["tasks.add"]; err == nil && !(v > 0 && v < 5) {
			return fmt.Errorf("median run time from native buckets = %v", got)
		}
		return err
	})
	for _, p := range []prometheus{plain, native} {
		_, body, err := fetch(t.Context(), p.url+"/api/v1/query_exemplars?start=0&end=99999999999&query="+url.QueryEscape(`{__name__=~"umbel_task_run_seconds(_bucket)?"}`))
		if err != nil || !strings.Contains(string(body), `"task_id":"`) {
			t.Errorf("exemplars: %v: %s", err, body)
		}
	}
}

// compareFlower compares families that both have with their values, where no difference is intended.
func compareFlower(t *testing.T, answer func(p prometheus, expr string, labels ...string) map[string]float64, p prometheus) {
	t.Helper()
	for expr, labels := range map[string][]string{
		"flower_task_runtime_seconds_count":                             {"task", "worker"},
		"flower_task_runtime_seconds_bucket":                            {"task", "worker", "le"},
		"flower_task_runtime_seconds_sum":                               {"task", "worker"},
		`count by (task, worker) (flower_task_runtime_seconds_created)`: {"task", "worker"},
		"flower_worker_online":                                          {"worker"},
		"flower_worker_number_of_currently_executing_tasks":             {"worker"},
		`flower_worker_prefetched_tasks{task!="tasks.flaky"}`:           {"task", "worker"}, // Flower's drifts if a task is retried
		`flower_task_prefetch_time_seconds{task!="tasks.flaky"}`:        {"task", "worker"},
		`flower_events_total{type!="task-sent"}`:                        {"task", "type", "worker"},
	} {
		eventually(t, timeout, func() error {
			values := make(map[string]map[string]float64)
			for _, job := range []string{"umbel", "flower"} {
				values[job] = answer(p, "("+expr+`) and on (job) up{job="`+job+`"}`, labels...)
				if strings.HasPrefix(expr, "count") {
					values[job] = answer(p, strings.Replace(expr, "_created", `_created{job="`+job+`"}`, 1), labels...)
				}
			}
			for key, v := range values["flower"] { // sums of floats in another order
				if d := values["umbel"][key] - v; d < 1e-9 && d > -1e-9 {
					values["umbel"][key] = v
				}
			}
			if diff := cmp.Diff(values["flower"], values["umbel"]); diff != "" {
				return fmt.Errorf("%s (-Flower +Umbel):\n%s", expr, diff)
			}
			return nil
		})
	}
}

// flower starts a Flower and returns its address.
func (c *cluster) flower(tb testing.TB) string {
	tb.Helper()
	address := freeAddress(tb)
	_, port, _ := strings.Cut(address, ":")
	cmd := command(append(c.env, "FLOWER_UNAUTHENTICATED_API=true"), testenv.Flower(tb), "-m", "celery", "-A", "tasks", "flower", "--address=127.0.0.1", "--port="+port)
	cmd.Dir = c.dir
	p := spawn(tb, cmd)
	p.await(tb, "Connected to redis")
	return address
}
