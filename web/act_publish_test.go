package web_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web"
)

func TestPublishIsClickedThrough(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	form := visit(t, h, "/ops/act/publish").Body.String()
	for _, want := range []string{`name="name"`, `>[]</textarea>`, `>{}</textarea>`, `name="eta"`, `name="priority"`} {
		if !strings.Contains(form, want) {
			t.Errorf("form has no %s", want)
		}
	}
	v := url.Values{
		"check": {"1"}, "name": {"mail.send"}, "args": {`["ann", {"price": 10.50}]`}, "kwargs": {`{"n": 12345678901234567890}`}, "priority": {"5"},
		"soft": {"1.5"}, "hard": {"3"}, "eta": {"2036-01-02 03:04"},
	}
	status, _, page := post(t, h, "/ops/act/publish", v)
	if status != http.StatusOK || !strings.Contains(page, "Run mail.send") || !strings.Contains(page, "10.50") {
		t.Fatalf("preview = %d:\n%s", status, page)
	}
	send := hiddenFields(page, "/ops/act/publish")
	var first string
	for range 2 {
		status, location, page := post(t, h, "/ops/act/publish", send)
		if status != http.StatusSeeOther || !strings.HasPrefix(location, "/ops/outbox/") {
			t.Fatalf("publishing leads with %d to %q:\n%s", status, location, page)
		}
		if first == "" {
			first = location
		}
		if location != first {
			t.Errorf("the form sent twice leads to %s, want %s again", location, first)
		}
	}
	list := s.published(t, 1)
	if len(list) != 1 {
		t.Fatalf("%d messages were published, want 1", len(list))
	}
	m := list[0]
	var args, kwargs any
	if err := json.Unmarshal(m.Args, &args); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(m.Kwargs, &kwargs)
	if diff := cmp.Diff([]any{"ann", map[string]any{"price": 10.5}}, args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(m.Kwargs), "12345678901234567890") {
		t.Errorf("kwargs = %s, want every digit", m.Kwargs)
	}
	if m.Name != "mail.send" || *m.Priority != 5 || *m.SoftLimit != 1.5 || *m.HardLimit != 3 || !m.ETA.Equal(time.Date(2036, 1, 2, 3, 4, 0, 0, time.UTC)) {
		t.Errorf("message = %+v", m)
	}
}

func TestPublishSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	tests := map[string]struct {
		form   url.Values
		status int
		want   []string
	}{
		"no JSON":      {url.Values{"name": {"mail.send"}, "args": {"[1,"}, "kwargs": {"{}"}}, 400, []string{`id="field-args"`, "[1,</textarea>"}},
		"deep inside":  {url.Values{"name": {"mail.send"}, "args": {`[1, 2, {"price": "\ud800"}]`}, "kwargs": {"{}"}}, 400, []string{"Args[2].price"}},
		"not an array": {url.Values{"name": {"mail.send"}, "args": {`{"a": 1}`}, "kwargs": {"{}"}}, 400, []string{"rgs must"}},
		"no name":      {url.Values{"args": {"[]"}, "kwargs": {"{}"}}, 400, []string{"ame must"}},
		"priority":     {url.Values{"name": {"mail.send"}, "priority": {"10"}}, 400, []string{"The priority must be a whole number from 0 to 9."}},
		"no number":    {url.Values{"name": {"mail.send"}, "countdown": {"soon"}}, 400, []string{"This must be a number."}},
		"too far":      {url.Values{"name": {"mail.send"}, "countdown": {"1e300"}}, 400, []string{"from 0 seconds to ten years"}},
		"no time":      {url.Values{"name": {"mail.send"}, "eta": {"tomorrow"}}, 400, []string{"This must be a time"}},
		"both times":   {url.Values{"name": {"mail.send"}, "countdown": {"5"}, "eta": {"2036-01-02"}}, 400, []string{"This must be a time"}},
		"expired":      {url.Values{"name": {"mail.send"}, "expires": {"2001-01-02 03:04"}}, 400, []string{"must not have passed"}},
		"markup":       {url.Values{"name": {"<b>"}, "args": {"<b>"}, "kwargs": {"</textarea><b>"}}, 400, []string{"&lt;b&gt;"}},
	}
	for name, tt := range tests {
		for _, check := range []string{"", "1"} {
			t.Run(name+check, func(t *testing.T) {
				t.Parallel()
				form := url.Values{"check": {check}}
				maps.Copy(form, tt.form)
				status, _, page := post(t, h, "/ops/act/publish", form)
				if status != tt.status || strings.Contains(page, "<b>") && !strings.Contains(page, "<b>Umbel") && name == "markup" {
					t.Errorf("answer = %d, want %d:\n%s", status, tt.status, page)
				}
				for _, want := range tt.want {
					if !strings.Contains(page, want) {
						t.Errorf("page has no %q:\n%s", want, page)
					}
				}
			})
		}
	}
	t.Cleanup(func() {
		if n := len(s.published(t, 0)); n != 0 {
			t.Errorf("%d messages were published", n)
		}
	})
}

func TestPublishOfAnUnknownTask(t *testing.T) {
	t.Parallel()
	h, s := acting(t, newNamedBackend(t), web.Options{})
	form := url.Values{"check": {"1"}, "name": {"mail.sned"}, "args": {"[]"}, "kwargs": {"{}"}}
	_, _, page := post(t, h, "/ops/act/publish", form)
	if !strings.Contains(page, "mail.send") || !strings.Contains(page, `name="force"`) || strings.Contains(page, "token") {
		t.Fatalf("no way on from an unknown task:\n%s", page)
	}
	form.Set("force", "true")
	status, _, page := post(t, h, "/ops/act/publish", form)
	if status != http.StatusOK || !strings.Contains(page, "notice-bad") {
		t.Fatalf("preview of what is forced = %d, want a warning:\n%s", status, page)
	}
	if status, _, page = post(t, h, "/ops/act/publish", hiddenFields(page, "/ops/act/publish")); status != http.StatusSeeOther {
		t.Fatalf("forced = %d:\n%s", status, page)
	}
	if list := s.published(t, 1); len(list) != 1 || list[0].Name != "mail.sned" {
		t.Errorf("published = %+v, want mail.sned", list)
	}
}

// What is changed and sent again must be whole, so a form never cuts arguments; it only stops indenting them.
func TestDeepArgumentsMakeShortForms(t *testing.T) {
	t.Parallel()
	deep := `[` + strings.Repeat(`[`, 4_000) + strings.Repeat(`0,`, 100_000) + `0` + strings.Repeat(`]`, 4_000) + `]`
	wide := `[` + strings.Repeat(`[0],`, 50_000) + `[0]]`
	long := `["` + strings.Repeat("a", 600_000) + `"]`
	s := &fakeResults{records: map[string]results.Result{}}
	for id, args := range map[string]string{"task-00": deep, "task-01": wide, "task-03": long} {
		s.records[id] = results.Result{Name: "mail.send", Args: json.RawMessage(args), Kwargs: json.RawMessage(`{}`)}
	}
	o := web.Options{Backend: newNamedBackend(t), Prefix: "/ops"}
	startWorkers(t, &o, s)
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for id, args := range map[string]string{"task-00": deep, "task-01": wide} {
		page := visit(t, h, "/ops/act/publish?retry_of="+id).Body.String()
		filled := find(`(?s)<textarea[^>]*name="args"[^>]*>([^<]*)<`, page)
		if len(filled) != 1 || strings.Join(strings.Fields(filled[0]), "") != args {
			t.Errorf("form of %s is not filled in with its arguments: %d fields, %d bytes", id, len(filled), len(page))
		}
		if len(page) > 600_000 {
			t.Errorf("form of %s is %d bytes long", id, len(page))
		}
	}
	page := visit(t, h, "/ops/act/publish?retry_of=task-03").Body.String()
	if !strings.Contains(page, "too long to edit here: 600006 bytes") || len(page) > 100_000 {
		t.Errorf("form of arguments that are too long has %d bytes:\n%.2000s", len(page), page)
	}
}
