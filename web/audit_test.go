package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

func TestTheAuditLogIsFilteredAndExported(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, false)
	for i, kind := range []history.AuditKind{history.AuditLogin, history.AuditExport} {
		err := p.db.AppendAudit(t.Context(), history.AuditRecord{
			At: time.UnixMicro(noon).Add(time.Duration(i) * time.Second), Kind: kind, Outcome: history.AuditRefused, Actor: "eve",
			Endpoint: "POST /login", Action: "test " + string(kind),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]string{
		"": "test export,test login", "?kind=login": "test login", "?outcome=refused&actor=eve": "test export,test login",
		"?kind=view": "", "?to=2020-01-01T00%3A00%3A00Z": "", "?outcome=accepted": "",
	} {
		page := visit(t, p, "/ops/outbox/audit"+target).Body.String()
		if got := strings.Join(find(`<td class="c-action"><b>([^<]*)`, page), ","); got != want {
			t.Errorf("page %s has %q, want %q", target, got, want)
		}
		lines := strings.Split(strings.TrimSpace(visit(t, p, "/ops/api/v1/audit/export"+target).Body.String()), "\n")
		if n := strings.Count(want, "test"); len(lines) != 1+n || !strings.HasPrefix(lines[0], "id,at,kind,outcome,actor") {
			t.Errorf("export %s has the lines %q, want %d and a header", target, lines, n)
		}
	}
	for _, target := range []string{"?kind=x", "?outcome=x", "?from=x"} {
		if w := visit(t, p, "/ops/outbox/audit"+target); w.Code != http.StatusBadRequest {
			t.Errorf("GET %s = %d, want 400", target, w.Code)
		}
	}
	w := visit(t, p, "/ops/api/v1/audit/export?format=jsonl&kind=login")
	if got := w.Body.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"endpoint":"POST /login"`) {
		t.Errorf("export as JSON lines = %s", got)
	}
}

func TestRedactionIsTried(t *testing.T) {
	t.Parallel()
	p := newOutboxWeb(t, true)
	page := visit(t, p, "/ops/settings").Body.String()
	if !strings.Contains(page, "key *password*") || !strings.Contains(page, `action="/ops/settings/redact"`) {
		t.Error("the settings do not show the rules and a form to try them")
	}
	status, _, body := post(t, p, "/ops/settings/redact", url.Values{"text": {`{'password': 'hunter2', 'n': 1}`}})
	if status != http.StatusOK || !strings.Contains(body, "{&#39;password&#39;: &#39;********&#39;, &#39;n&#39;: 1}</pre>") {
		t.Errorf("POST = %d, %s", status, find(`<pre[^>]*>([^<]*)`, body))
	}
}
