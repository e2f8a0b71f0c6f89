package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
)

// newAlerts is a service of alerts in whose every record seven payments fail.
func newAlerts(t *testing.T) *evaluate.Service {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	now := time.Now()
	s, err := evaluate.New(evaluate.Options{
		Store: db, Receivers: []receivers.Receiver{{Name: "ops", Webhook: "https://hooks.example/token"}},
		Take: func() *alert.Record {
			from := now
			now = now.Add(time.Minute)
			return &alert.Record{
				From: from.UnixMicro(), At: now.UnixMicro(), Connected: true, Counts: []alert.Count{{Query: `exc:secret`, N: 42}},
				Cells: []history.Rollup{{Name: "shop.pay", Worker: "w1", Failed: 7}},
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sendAs(t *testing.T, h http.Handler, a auth.Audience, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	as(auth.Grant{User: "ann", Audience: a}, h).ServeHTTP(w, r)
	return w
}

func TestAlertsByTheAPI(t *testing.T) {
	t.Parallel()
	o := options(t, newBackend(t))
	h := api.New(o)
	rule := `{"kind":"threshold","measure":"failed","limit":5,"window_seconds":60}`
	if w := sendAs(t, h, auth.Everything, "POST", "/alerts/rules", `{"name":"Payments","enabled":true,"receivers":["ops"],"rule":`+rule+`}`); w.Code != http.StatusCreated {
		t.Fatalf("add: %d %s", w.Code, w.Body)
	}
	if err := o.Alerts.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []struct{ Text string } }
	if err := json.Unmarshal(sendAs(t, h, auth.Everything, "GET", "/alerts?open=true", "").Body.Bytes(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Text != "7 failures in 1 min, above 5." {
		t.Fatalf("alerts = %+v, %v, want one", list, err)
	}
	for _, step := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/alerts/1/acknowledge", "", http.StatusNoContent},
		{"POST", "/alerts/9/acknowledge", "", http.StatusNotFound},
		{"POST", "/alerts/rules/1/mute?seconds=60", "", http.StatusNoContent},
		{"POST", "/alerts/rules/1/mute?seconds=99999999", "", http.StatusBadRequest},
		{"PUT", "/alerts/rules/1", `{"name":"P","rule":` + rule + `}`, http.StatusOK},
		{"PUT", "/alerts/rules/9", `{"name":"P","rule":` + rule + `}`, http.StatusNotFound},
		{"POST", "/alerts/rules", `{"name":"P","rule":{"kind":"threshold","measure":"nope"}}`, http.StatusBadRequest},
		{"POST", "/alerts/backtest", rule, http.StatusOK},
		{"POST", "/alerts/receivers/test?dry_run=true", `{"receiver":"ops"}`, http.StatusOK},
		{"POST", "/alerts/receivers/test", `{"receiver":"ops"}`, http.StatusAccepted},
		{"POST", "/alerts/receivers/test", `{"receiver":"nobody"}`, http.StatusNotFound},
		{"DELETE", "/alerts/rules/1", "", http.StatusNoContent},
		{"DELETE", "/alerts/rules/1", "", http.StatusNotFound},
	} {
		if w := sendAs(t, h, auth.Everything, step.method, step.path, step.body); w.Code != step.want {
			t.Errorf("%s %s: %d %s, want %d", step.method, step.path, w.Code, w.Body, step.want)
		}
	}
}

// TestRulesThatAskForPayloadsAreHidden makes a rule whose query tells what is in exceptions.
func TestRulesThatAskForPayloadsAreHidden(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	o := options(t, b)
	o.Hidden = payload.Hide(b)
	h := api.New(o)
	body := `{"name":"Errors","enabled":true,"rule":{"kind":"threshold","measure":"tasks","query":"exc:secret","limit":3}}`
	blind := auth.Audience{Role: auth.Admin}
	if w := sendAs(t, h, blind, "POST", "/alerts/rules", body); w.Code != http.StatusForbidden {
		t.Errorf("add without seeing payloads: %d %s, want 403", w.Code, w.Body)
	}
	if w := sendAs(t, h, auth.Everything, "POST", "/alerts/rules", body); w.Code != http.StatusCreated {
		t.Fatalf("add: %d %s", w.Code, w.Body)
	}
	if err := o.Alerts.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/alerts", "/alerts/rules"} {
		if got := sendAs(t, h, blind, "GET", path, "").Body.String(); strings.Contains(got, "secret") || strings.Contains(got, `"value":42`) || !strings.Contains(got, "Errors") {
			t.Errorf("%s tells what is hidden, or that there is no rule: %s", path, got)
		}
		if got := sendAs(t, h, auth.Everything, "GET", path, "").Body.String(); !strings.Contains(got, "secret") {
			t.Errorf("%s does not show it to those who may see it: %s", path, got)
		}
	}
	if w := sendAs(t, h, blind, "PUT", "/alerts/rules/1", strings.Replace(body, "exc:secret", "name:a", 1)); w.Code != http.StatusForbidden {
		t.Errorf("change without seeing payloads: %d, want 403", w.Code)
	}
}
