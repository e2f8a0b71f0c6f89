package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// TestBrowserMakesARuleThatFires makes a rule, sees what it would have done, has it fire by events, acknowledges and mutes that.
func TestBrowserMakesARuleThatFires(t *testing.T) {
	t.Parallel()
	s, alerts, fail := newAlertsServer(t)
	tb := newTab(t, testbrowser.Open(t), s, "/alerts")
	tb.until(live)
	tb.click("h1 ~ .tools .button")
	tb.until(`location.pathname === "/ops/act/alert" && document.querySelector("#field-name") !== null`)
	tb.eval(`[["name", "Payments"], ["query", "name:shop.pay"], ["limit", "2"]].forEach(([name, text]) => document.querySelector("#field-" + name).value = text)`)
	tb.submit("#field-name")
	tb.until(`document.querySelector(".act .summary")?.innerText === "Failures (name:shop.pay) within 5 min above 2."`)
	tb.want(`document.querySelector("p.backtest").innerText.startsWith("There is nothing to judge it by yet")`, true)
	tb.submit(".act .button.primary")
	tb.until(`document.querySelector("#rule-1")?.innerText.includes("Payments") && ` + live)

	fail(3)
	if err := alerts.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	tb.until(`document.querySelector("#firing-1")?.innerText.includes("3 failures in 5 min, above 2.")`)
	tb.until(`document.querySelector("#firing").innerText === "1"`)

	tb.click("#rule-1 .c-name a") // the backtest says what has happened
	tb.until(`document.querySelector("#field-name")?.value === "Payments"`)
	tb.submit("#field-name")
	tb.until(`document.querySelector("p.backtest")?.innerText.startsWith("Would have fired once")`)
	tb.until(`document.querySelector("ul.backtest").innerText.includes("still firing: 3 failures in 5 min, above 2.")`)
	tb.width(390)
	tb.submit(".act .button.primary")
	tb.until(`document.querySelector("#firing-1") !== null && ` + live)

	tb.want(`document.documentElement.scrollWidth`, 390.0)
	tb.want(`((r) => r.left >= 0 && r.right <= innerWidth)(document.querySelector(".rail [aria-current]").getBoundingClientRect())`, true)
	tb.submit("#firing-1 button")
	tb.until(`document.querySelector("#firing-1")?.innerText.includes("by somebody") && document.querySelector("#firing").hidden`)
	tb.submit("#rule-1 button[value='60']")
	tb.until(`document.querySelector("#rule-1")?.innerText.includes("Unmute") && document.querySelector("#firing-1")?.innerText.includes("muted")`)
}

// firingPages are those of a rule that fires.
func firingPages(t *testing.T) visited {
	t.Helper()
	s, alerts, fail := newAlertsServer(t)
	rule := evaluate.Rule{
		AlertRule: history.AlertRule{Name: "Payments", Enabled: true},
		Rule:      alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Per: alert.PerName, Limit: 2},
	}
	if _, err := alerts.Save(t.Context(), rule, "ann"); err != nil {
		t.Fatal(err)
	}
	fail(3)
	if err := alerts.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	return visited{base: "http://" + s.address + s.prefix, paths: []string{
		"/alerts", "/act/alert?kind=threshold&name=a&measure=failed&limit=2&per=name&check=1", "/act/alert-delete?id=1",
	}}
}

// submit presses Enter in an element of a form.
func (tb *tab) submit(selector string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`((e) => { e?.focus(); return e != null && document.activeElement === e })(document.querySelector(%q))`, selector))
	tb.press("\r")
}

// newAlertsServer shows a cluster whose alerts are judged by its events when the test says so. fail has that many payments fail.
func newAlertsServer(t *testing.T) (s *server, alerts *evaluate.Service, fail func(n int)) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	b := inproc.New(inproc.Options{})
	m, err := ingest.New(ingest.Options{Broker: b, Store: db})
	if err != nil {
		t.Fatal(err)
	}
	r, err := view.New(m, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if alerts, err = evaluate.New(evaluate.Options{Store: db, Take: m.TakeRecord, Count: r.Count}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		_ = db.Close()
	})
	if err := alerts.Tick(t.Context()); err != nil { // which begins the first interval
		t.Fatal(err)
	}
	fail = func(n int) {
		for i := range n {
			for clock, kind := range []string{`"task-received","name":"shop.pay"`, `"task-started"`, `"task-failed","exception":"Declared()"`} {
				body := fmt.Appendf(nil, `{"type":%s,"uuid":"pay-%d","pid":7,"hostname":"celery@a","clock":%d,"timestamp":%d}`, kind, i, 3*i+clock+1, time.Now().Unix())
				if err := b.Publish(t.Context(), broker.Message{Body: body, ContentType: "application/json"}); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the task has failed", func() bool {
				task, err := r.Task(t.Context(), fmt.Sprintf("pay-%d", i))
				return err == nil && task.State == state.Failure
			})
		}
	}
	s = &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.Backend, o.Alerts, o.Now = r, alerts, time.Now }
	s.start()
	t.Cleanup(func() { s.stop() })
	return s, alerts, fail
}
