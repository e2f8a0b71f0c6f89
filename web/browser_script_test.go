package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// TestFramesCostLittleScript compares the scripts of a frame on the Tasks page with parsing and scripts of loading it while nothing
// happens. Both are processor time, and the least of several rounds counts: neither a slow machine nor a busy one makes it fail. It does
// not run beside others, since a trace is of the whole browser.
func TestFramesCostLittleScript(t *testing.T) {
	const rounds, frames, most = 3, 6, .5
	s := newServer(t, "", nil)
	tb := newTab(t, testbrowser.Open(t), s, "/tasks")
	tb.until(live)
	if err := called(chromedp.Call(tb.ctx, network.Enable, network.EnableParams{})); err != nil {
		t.Fatal(err)
	}
	tb.eval(`localStorage.setItem("umbel.rate", "250")`) // the shortest pause between frames, from the next load on
	load, frame := 1e9, 1e9
	for round := range rounds {
		ms, _ := tb.scripts(func() {
			if err := chromedp.Do(tb.ctx, chromedp.Navigate(tb.url)); err != nil {
				t.Fatal(err)
			}
			tb.awaits(live)
		})
		load = min(load, ms)
		ms, n := tb.scripts(func() {
			for i := range frames {
				for j := range 5 {
					for _, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
						s.backend.now(kind, fmt.Sprint("frame-", round, "-", i, "-", j))
					}
				}
				tb.awaits(fmt.Sprintf(`document.querySelector("#t-frame-%d-%d-4 .state-success")`, round, i))
			}
		})
		if n < frames {
			t.Fatalf("%d frames, want at least %d", n, frames)
		}
		frame = min(frame, ms/float64(n))
	}
	t.Logf("scripts take %.2f ms a frame; loading the page takes %.1f ms", frame, load)
	if frame > most*load {
		t.Errorf("the scripts of a frame take %.2f of what loading the page takes, want at most %.2f", frame/load, most)
	}
}

// awaits is until in one evaluation: the page itself looks whenever it changes.
func (tb *tab) awaits(expression string) {
	tb.t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, timeout)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[any](fmt.Sprintf(`new Promise((resolve) => {
		const look = () => %s && (watcher.disconnect(), resolve(true));
		const watcher = new MutationObserver(look);
		watcher.observe(document.documentElement, { attributes: true, childList: true, subtree: true });
		look();
	})`, expression), chromedp.EvalAwaitPromise))
	if err != nil {
		tb.t.Fatalf("never true: %s: %v", expression, err)
	}
}

// scripted is what Chromium traces of scripts.
type scripted struct {
	Name  string  `json:"name"`
	PID   int     `json:"pid"`
	TID   int     `json:"tid"`
	Start float64 `json:"tts"` // µs of the thread's processor time
	Took  float64 `json:"tdur"`
}

// scripts returns the processor time that scripts and parsing HTML take in the browser while do runs, in milliseconds, and how many binary messages
// the tab receives.
func (tb *tab) scripts(do func()) (ms float64, frames int) {
	tb.t.Helper()
	ctx, cancel := context.WithCancel(tb.ctx)
	defer cancel()
	var events []scripted
	done := make(chan struct{})
	err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *network.EventWebSocketFrameReceived:
			if ev.Response.Opcode == 2 {
				frames++
			}
		case *tracing.EventDataCollected:
			for _, v := range ev.Value {
				var e scripted
				if err := json.Unmarshal(v, &e); err == nil && slices.Contains([]string{"EvaluateScript", "FunctionCall", "RunMicrotasks", "ParseHTML"}, e.Name) {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			close(done)
		}
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	config := tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline"}}
	if err := called(chromedp.Call(tb.ctx, tracing.Start, tracing.StartParams{TraceConfig: &config})); err != nil {
		tb.t.Fatal(err)
	}
	do()
	if err := called(chromedp.Call(tb.ctx, tracing.End, cdp.Empty{})); err != nil {
		tb.t.Fatal(err)
	}
	<-done
	return outermost(events) / 1000, frames
}

// outermost adds up what took time on any thread, but not what is within another.
func outermost(events []scripted) float64 {
	slices.SortFunc(events, func(a, b scripted) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID), cmp.Compare(a.Start, b.Start), cmp.Compare(b.Took, a.Took))
	})
	var sum float64
	var last scripted
	for _, e := range events {
		if e.PID != last.PID || e.TID != last.TID || e.Start >= last.Start+last.Took {
			sum, last = sum+e.Took, e
		}
	}
	return sum
}
