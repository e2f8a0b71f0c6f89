package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// BenchmarkSlowBrowser opens the Tasks page on a processor that is slowed down to a sixth, while 20 tasks a second run, and while none
// does: the share of one core that the page takes, and the longest time from a click to the next frame.
func BenchmarkSlowBrowser(b *testing.B) {
	const seconds, rate = 15, 20
	browser := testbrowser.Open(b)
	for name, n := range map[string]int{"idle": 0, "rate=20": rate} {
		b.Run(name, func(b *testing.B) {
			s := newServer(b, "", nil)
			tb := newTab(b, browser, s, "/tasks")
			tb.until(live)
			for _, err := range []error{
				called(chromedp.Call(tb.ctx, performance.Enable, performance.EnableParams{})),
				called(chromedp.Call(tb.ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 6})),
			} {
				if err != nil {
					b.Fatal(err)
				}
			}
			tb.eval(`void (() => {
				window.clicks = [];
				new PerformanceObserver((list) => window.clicks.push(...list.getEntries().filter((e) => e.name === "click").map((e) => e.duration)))
					.observe({ type: "event", durationThreshold: 16, buffered: true });
			})()`)
			for b.Loop() {
				begin, before := time.Now(), tb.metrics()
				tick := time.NewTicker(time.Second / rate)
				for i := range seconds * rate {
					<-tick.C
					if n > 0 {
						id := fmt.Sprint(b.N, "-", i)
						for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
							s.backend.now(kind, id)
						}
					}
					if i%rate == 7 {
						tb.click(".viewbar details[data-menu] summary")
					}
				}
				tick.Stop()
				after := tb.metrics()
				took := time.Since(begin).Seconds()
				b.ReportMetric(100*(after["TaskDuration"]-before["TaskDuration"])/took, "%task")
				b.ReportMetric(100*(after["ThreadTime"]-before["ThreadTime"])/took, "%thread")
				b.ReportMetric(100*(after["ScriptDuration"]-before["ScriptDuration"])/took, "%script")
				b.ReportMetric(100*(after["LayoutDuration"]-before["LayoutDuration"]+after["RecalcStyleDuration"]-before["RecalcStyleDuration"])/took, "%layout")
				longest, _ := tb.eval(`Math.max(0, ...window.clicks)`).(float64)
				b.ReportMetric(longest, "click-ms")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

func called[T any](_ T, err error) error { return err }

// metrics are what the browser counts of the tab.
func (tb *tab) metrics() map[string]float64 {
	tb.t.Helper()
	found, err := chromedp.Call(tb.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		tb.t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, m := range found.Metrics {
		all[m.Name] = m.Value
	}
	return all
}
