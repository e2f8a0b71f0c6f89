package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web"
)

// TestTaskTypesShowTimesPast counts a minute after noon, and another one.
func TestTaskTypesShowTimesPast(t *testing.T) {
	t.Parallel()
	o := web.Options{Prefix: "/ops"}
	withPast(t, &o)
	minute := int64(noon / 60e6)
	_, err := o.Backend.(savedBackend).history.Write(t.Context(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: []history.Rollup{
		{At: minute, Name: "billing.charge", Worker: "celery@a", Received: 5, Succeeded: 3, Failed: 1},
		{At: minute + 1, Name: "billing.charge", Worker: "celery@a", Received: 5, Succeeded: 5},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"v1", "v2"} {
		m := history.Mark{At: time.UnixMicro(noon).Add(time.Duration(i+1) * time.Minute), Text: text}
		if _, err := o.Backend.History().AddMark(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	h := newWeb(t, o)
	for path, want := range map[string][]string{
		"/ops/types?" + after(75*time.Second):                        {">4</a>", " until <time datetime=\"2026-11-21T12:01:00"},
		"/ops/types?" + after(135*time.Second):                       {">9</a>", " until <time datetime=\"2026-11-21T12:02:00"},
		"/ops/types?last=7d&" + after(75*time.Second):                {">4</a>", " until <time datetime=\"2026-11-21T12:01:00", `name="at" value="2026`},
		"/ops/types/billing.charge?" + after(75*time.Second):         {"counted until", "Slowest in the 24h before", `id="scrubber"`, "celery@a"},
		"/ops/types/billing.charge?last=1h&" + after(75*time.Second): {"counted until", `href="/ops/types?at=2026-11-21T12%3A01%3A15.000000Z&amp;last=1h"`},
	} {
		w := visit(t, h, path)
		for _, text := range append(want, "As of <time") {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s lacks %q", path, text)
			}
		}
		if body := w.Body.String(); w.Code != http.StatusOK || strings.Contains(body, "data-topic") {
			t.Errorf("%s: status %d, or it is live", path, w.Code)
		}
	}
	for path, want := range map[string][]string{
		"/ops/api/v1/types?" + after(75*time.Second):                         {`"succeeded":3`, `"to":"2026-11-21T12:01:00.000000Z"`, `"last_failure_at":"2026-11-21T12:01:08.000000Z"`},
		"/ops/api/v1/types?last=30d&" + after(135*time.Second):               {`"succeeded":8`, `"to":"2026-11-21T12:02:00.000000Z"`},
		"/ops/api/v1/types/billing.charge?last=7d&" + after(75*time.Second):  {`"succeeded":3`, `"to":"2026-11-21T12:01:00.000000Z"`},
		"/ops/api/v1/marks?" + after(75*time.Second):                         {`"text":"v1"`},
		"/ops/api/v1/types/billing.charge?" + after(135*time.Second):         {`"succeeded":8`, `"received":10`},
		"/ops/api/v1/types/billing.charge?last=1h&" + after(135*time.Second): {`"observed_seconds":120`},
	} {
		w := visit(t, h, path)
		for _, text := range want {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s lacks %q: %d %s", path, text, w.Code, w.Body)
			}
		}
		if strings.Contains(w.Body.String(), "v2") {
			t.Errorf("%s knows of a mark that came later", path)
		}
	}
}
