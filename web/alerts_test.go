package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/web"
)

// newAlerts is a service of alerts, which judges the records that next makes.
func newAlerts(t testing.TB, next func() *alert.Record) *evaluate.Service {
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
	if next == nil {
		next = func() *alert.Record { return nil }
	}
	s, err := evaluate.New(evaluate.Options{
		Store: db, Take: next, Receivers: []receivers.Receiver{{Name: "ops", Webhook: "https://hooks.example/secret-path?token=secret-token", Secret: "secret-key"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a form.
func postForm(t *testing.T, h http.Handler, path string, v url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAlertsFromTheRuleToItsEnd makes a rule by its form, lets it fire, acknowledges that, mutes and deletes it.
func TestAlertsFromTheRuleToItsEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	next := func() *alert.Record {
		from := now
		now = now.Add(time.Minute)
		return &alert.Record{
			From: from.UnixMicro(), At: now.UnixMicro(), Connected: true,
			Cells: []history.Rollup{{Name: "shop.pay", Worker: "w1", Failed: 7}},
		}
	}
	s := newAlerts(t, next)
	h := newWeb(t, web.Options{Prefix: "/ops", Alerts: s})
	page := func() string { return visit(t, h, "/ops/alerts").Body.String() }
	if got := page(); !strings.Contains(got, "Nothing fires.") || !strings.Contains(got, "Deaf worker") {
		t.Errorf("the empty page does not say so, or suggests nothing:\n%s", got)
	}
	if err := s.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"kind": {"threshold"}, "name": {"Payments"}, "measure": {"failed"}, "side": {"above"}, "limit": {"5"}, "window": {"1"},
		"query": {"name:shop.pay"}, "receivers": {"ops"}, "enabled": {"true"},
	}
	checked := visit(t, h, "/ops/act/alert?check=1&"+form.Encode()).Body.String()
	for _, want := range []string{"Failures (name:shop.pay) within 1 min above 5.", "Would have fired once", "7 failures in 1 min, above 5."} {
		if !strings.Contains(checked, want) {
			t.Errorf("the preview lacks %q:\n%s", want, checked)
		}
	}
	if w := postForm(t, h, "/ops/act/alert", form); w.Code != http.StatusSeeOther {
		t.Fatalf("save: %d\n%s", w.Code, w.Body)
	}
	if err := s.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := page(); !strings.Contains(got, "7 failures in 1 min, above 5.") || !strings.Contains(got, `title="1 alert fires"`) {
		t.Errorf("nothing says that the rule fires:\n%s", got)
	}
	for path, v := range map[string]url.Values{"/ops/alerts/1/acknowledge": {}, "/ops/alerts/mute": {"rule": {"1"}, "minutes": {"60"}}} {
		if w := postForm(t, h, path, v); w.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d\n%s", path, w.Code, w.Body)
		}
	}
	if got := page(); strings.Contains(got, "1 alert fires") || !strings.Contains(got, "Unmute") || !strings.Contains(got, "by somebody") {
		t.Errorf("the alert is not acknowledged, or its rule not muted:\n%s", got)
	}
	if w := postForm(t, h, "/ops/act/alert-delete", url.Values{"id": {"1"}}); w.Code != http.StatusSeeOther {
		t.Fatalf("delete: %d\n%s", w.Code, w.Body)
	}
	if got := page(); !strings.Contains(got, "No rules.") || !strings.Contains(got, "Payments") {
		t.Errorf("the rule is there still, or its history is not:\n%s", got)
	}
}

func TestWrongRulesOfAlertsAreExplainedAtTheirFields(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Alerts: newAlerts(t, nil)})
	for field, wrong := range map[string]string{"limit": "many", "query": "nonsense:1", "window": "90", "receivers": "nobody"} {
		form := url.Values{"kind": {"threshold"}, "name": {"a"}, "measure": {"failed"}, "limit": {"5"}, "window": {"5"}}
		form.Set(field, wrong)
		w := postForm(t, h, "/ops/act/alert", form)
		if got := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(got, `aria-invalid="true"`) {
			t.Errorf("%s %q: %d, no field is marked:\n%s", field, wrong, w.Code, got)
		}
	}
	for path, v := range map[string]url.Values{
		"/ops/alerts/9/acknowledge": {}, "/ops/alerts/mute": {"rule": {"9"}, "minutes": {"1"}}, "/ops/act/alert-delete": {"id": {"9"}},
	} {
		if w := postForm(t, h, path, v); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
}

func TestReceiversShowNoSecrets(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Alerts: newAlerts(t, nil)})
	for _, path := range []string{"/ops/settings", "/ops/alerts", "/ops/act/alert?kind=threshold", "/ops/api/v1/alerts/receivers"} {
		if got := visit(t, h, path).Body.String(); strings.Contains(got, "secret-") || !strings.Contains(got, "ops") {
			t.Errorf("%s shows a secret, or no receiver:\n%s", path, got)
		}
	}
}

// A rule that asks for arguments is shown, changed and tried by nobody who may not see them.
func TestAlertsTellNothingOfHiddenPayloads(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Auth: doorkeeper{}, Alerts: newAlerts(t, nil)})
	const rule = `{"kind":"threshold","query":"args:sesame","measure":"tasks","limit":1}`
	const saved = `{"name":"Cards","enabled":true,"rule":` + rule + `}`
	ask := func(method, path, body, as string) *httptest.ResponseRecorder {
		return request(t, h, method, path, body, "As", as, "Content-Type", "application/json")
	}
	if w := ask(http.MethodPost, "/api/v1/alerts/rules", saved, "admin"); w.Code != http.StatusCreated {
		t.Fatalf("save: %d %s", w.Code, w.Body)
	}
	for path, body := range map[string]string{
		"POST /api/v1/alerts/backtest": rule, "POST /api/v1/alerts/rules": saved,
		"PUT /api/v1/alerts/rules/1": `{"name":"All","rule":{"kind":"threshold","measure":"tasks","limit":1}}`,
		"GET /act/alert?id=1":        "", "GET /act/alert?id=1&name=All&kind=threshold&measure=tasks&limit=1&check=1": "",
	} {
		method, path, _ := strings.Cut(path, " ")
		if w := ask(method, path, body, "admin/"); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "args:sesame") {
			t.Errorf("%s %s: %d, want 403", method, path, w.Code)
		}
	}
	for _, path := range []string{"/alerts", "/api/v1/alerts/rules"} {
		if w := ask(http.MethodGet, path, "", "viewer/"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "sesame") || !strings.Contains(w.Body.String(), "Cards") {
			t.Errorf("%s: %d %.300s, want the rule without its query", path, w.Code, w.Body)
		}
	}
}
