package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web"
)

// TestAlertsShowTimesPast has a rule fire from 20 seconds after noon to 40.
func TestAlertsShowTimesPast(t *testing.T) {
	t.Parallel()
	now, failed := time.UnixMicro(noon), int64(0)
	s := newAlerts(t, func() *alert.Record {
		from := now
		now = now.Add(20 * time.Second)
		return &alert.Record{
			From: from.UnixMicro(), At: now.UnixMicro(), Connected: true, Cells: []history.Rollup{{Name: "shop.pay", Failed: failed}},
		}
	})
	rule := alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 5, Window: 10}
	if _, err := s.Save(t.Context(), evaluate.Rule{AlertRule: history.AlertRule{Name: "Payments", Enabled: true}, Rule: rule}, "ann"); err != nil {
		t.Fatal(err)
	}
	for _, failed = range []int64{7, 0} {
		if err := s.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	o := web.Options{Prefix: "/ops", Alerts: s}
	withPast(t, &o)
	h := newWeb(t, o)
	for at, want := range map[time.Duration][]string{
		10 * time.Second: {"Nothing fires.", "Nothing has fired."},
		30 * time.Second: {`id="firing-1"`, "7 failures in 10 s, above 5.", "Nothing has fired."},
		50 * time.Second: {"Nothing fires.", `id="past-1"`, "7 failures in 10 s, above 5."},
	} {
		w := visit(t, h, "/ops/alerts?"+after(at))
		body := w.Body.String()
		for _, text := range append(want, "As of <time", "Rules are known only as they are now") {
			if !strings.Contains(body, text) {
				t.Errorf("after %v: no %q", at, text)
			}
		}
		if w.Code != http.StatusOK || strings.Contains(body, "<form class=\"mute\"") || strings.Contains(body, "/acknowledge") {
			t.Errorf("after %v: status %d, or something can be done", at, w.Code)
		}
	}
	for at, want := range map[time.Duration]string{
		10 * time.Second: `"items":[]`, 30 * time.Second: `"end":null`, 50 * time.Second: `"end":"2026-11-21T12:00:40`,
	} {
		if w := visit(t, h, "/ops/api/v1/alerts?"+after(at)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("API after %v: %d %s", at, w.Code, w.Body)
		}
	}
	if body := visit(t, h, "/ops/alerts").Body.String(); !strings.Contains(body, `id="look-back"`) {
		t.Error("the page of now does not offer to look back")
	}
}
