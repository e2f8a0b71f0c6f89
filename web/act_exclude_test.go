package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// payments applies n payments of one order, which differ in their request only.
func payments(b *backend, n int) {
	for i := range n {
		e := taskEvent(state.TaskReceived, fmt.Sprintf("pay-%d", i), 300+i)
		e.Name, e.Args, e.Kwargs = "shop.pay", "()", fmt.Sprintf("{'order': 7, 'request_id': 'r%d'}", i)
		b.Apply(e)
	}
}

// excluding returns commands by which fields of the tasks of b can be excluded.
func excluding(t *testing.T, b *backend) *command.Service {
	t.Helper()
	s, err := command.New(command.Options{Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: b.DB, Rules: b.DB, Tasks: b})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFieldsAreExcludedAfterAPreview(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	payments(b, 3)
	commands := excluding(t, b)
	h, err := web.New(web.Options{
		Backend: b, Prefix: "/ops", Commands: commands, Now: func() time.Time { return time.UnixMicro(noon).Add(time.Hour).UTC() },
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func(what, page string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not say %q", what, text)
			}
		}
	}
	says("the form", visit(t, h, "/ops/act/exclude?name=shop.pay").Body.String(), `value="shop.pay"`, "&#34;request_id&#34;:&#34;r2&#34;")
	check := url.Values{"name": {"shop.pay"}, "fields": {"request_id\r\n\r\n order.at "}, "check": {"1"}}
	preview := visit(t, h, "/ops/act/exclude?"+check.Encode()).Body.String()
	says("the preview", preview, "Compare shop.pay without request_id, order.at", "all 3 tasks of this name", "<b>0</b>", "<b>1</b>", "with 3 tasks",
		"{&#34;order&#34;:7}", ">Save</button>")
	if page := visit(t, h, "/ops/duplicates/rules").Body.String(); !strings.Contains(page, "No fields are excluded") {
		t.Error("the preview has saved something")
	}

	for range 2 { // a form that is sent twice does no harm
		w := submit(t, h, "/ops/act/exclude", check)
		if got, want := w.Header().Get("Location"), "/ops/duplicates/rules?saved=shop.pay"; w.Code != http.StatusSeeOther || got != want {
			t.Fatalf("saving leads with %d to %q, want 303 to %q", w.Code, got, want)
		}
	}
	says("the list", visit(t, h, "/ops/duplicates/rules?saved=shop.pay").Body.String(),
		"<strong>Saved.</strong>", "<code>request_id</code>", "<code>order.at</code>", `href="/ops/act/exclude?name=shop.pay"`, `data-topic="/duplicates/rules"`)
	if records, _, err := commands.AuditLog(t.Context(), history.AuditFilter{Limit: 10}); err != nil || len(records) != 1 {
		t.Errorf("%d audit records, %v; want 1", len(records), err)
	}
	says("the form", visit(t, h, "/ops/act/exclude?name=shop.pay").Body.String(), ">order.at\nrequest_id</textarea>")
	says("the same preview", visit(t, h, "/ops/act/exclude?"+check.Encode()).Body.String(), "This is saved already")

	check.Set("fields", "")
	says("the preview of all", visit(t, h, "/ops/act/exclude?name=shop.pay&fields=&check=1").Body.String(), "by all its arguments", ">Delete rule</button>")
	submit(t, h, "/ops/act/exclude", check)
	says("the list", visit(t, h, "/ops/duplicates/rules").Body.String(), "No fields are excluded")
}

func TestFieldsThatCannotBeExcluded(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	h, err := web.New(web.Options{Backend: b, Prefix: "/ops", Commands: excluding(t, b)})
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]url.Values{
		"no name":         {"fields": {"a"}},
		"a wrong path":    {"name": {"x"}, "fields": {"a..b"}},
		"a path in lines": {"name": {"x"}, "fields": {"a\nb c"}},
		"too many fields": {"name": {"x"}, "fields": {strings.Repeat("a\n", 101)}},
		"a long name":     {"name": {strings.Repeat("x", 2_000)}, "fields": {"a"}},
	} {
		w := submit(t, h, "/ops/act/exclude", form)
		if page := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(page, `class="wrong"`) {
			t.Errorf("%s answers %d, want 400 with the reason", name, w.Code)
		}
		form.Set("check", "1")
		if w := visit(t, h, "/ops/act/exclude?"+form.Encode()); w.Code != http.StatusBadRequest {
			t.Errorf("the preview of %s answers %d, want 400", name, w.Code)
		}
	}
}
