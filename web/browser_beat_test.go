package web_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// TestBrowserSeesThatBeatReplies has a beat that replies to pings, as that of Celery 5.7 does.
func TestBrowserSeesThatBeatReplies(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s, c, work := newIdleWorkers(t)
	work()
	eventually(t, "the line is open", func() bool { return c.commands.Client.Connected() })
	c.mu.Lock()
	c.answers["celerybeat@a"] = map[string]any{"ping": map[string]string{"ok": "pong"}}
	c.mu.Unlock()
	tb := newTab(t, b, s, "/schedules")
	tb.until(`document.querySelector("#schedules").innerText.includes("celerybeat@a") && ` + live)
	tb.want(`document.querySelector("#schedules .traits tbody tr").innerText.includes("replies")`, true)
	tb.eval(`void location.assign("/ops/workers")`)
	tb.until(`document.querySelector("main a[href='/ops/workers/celery@a']") !== null && ` + live)
	tb.want(`document.querySelector("main a[href*=celerybeat]")`, nil)
}
