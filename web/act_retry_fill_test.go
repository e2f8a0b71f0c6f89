package web_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// What events show as values is filled in; what they show as objects must be typed in.
func TestRetryFillsInWhatIsKnown(t *testing.T) {
	t.Parallel()
	b := newNamedBackend(t)
	e := taskEvent(state.TaskReceived, "decimal", 300)
	e.Args, e.Kwargs = "(7, Decimal('1.10'), {'to': <User: Ann>, 'n': 12345678901234567890})", "{'now': True}"
	b.Apply(e, taskEvent(state.TaskFailed, "decimal", 301))
	h, s := acting(t, b, web.Options{})
	page := visit(t, h, "/ops/act/publish?retry_of=decimal").Body.String()
	areas := regexp.MustCompile(`(?s)<textarea[^>]*>(.*?)</textarea>`).FindAllStringSubmatch(page, -1)
	if len(areas) != 2 {
		t.Fatalf("%d fields", len(areas))
	}
	args := html.UnescapeString(areas[0][1])
	const want = "[\n  7,\n  ‹Decimal('1.10')›,\n  {\"to\": ‹<User: Ann>›, \"n\": 12345678901234567890}\n]"
	if args != want || areas[1][1] != html.EscapeString(`{"now":true}`) {
		t.Errorf("args = %s, want %s; kwargs = %s", args, want, areas[1][1])
	}
	for _, want := range []string{"2 of 4 are filled in from events", "type a value in place of each ‹…›", `{"__type__":"decimal","__value__":"1.10"}`} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("form has no %q", want)
		}
	}
	form := url.Values{"retry_of": {"decimal"}, "name": {"billing.charge"}, "queue": {"celery"}, "args": {args}, "kwargs": {`{"now": true}`}}
	if status, _, page := post(t, h, "/ops/act/publish", form); status != http.StatusBadRequest || !strings.Contains(page, "ype a value in place of each") {
		t.Errorf("what must be typed in was sent: status %d", status)
	}
	form.Set("args", strings.NewReplacer("‹Decimal('1.10')›", `"1.10"`, "‹<User: Ann>›", "5").Replace(args))
	if status, _, page := post(t, h, "/ops/act/publish", form); status != http.StatusSeeOther {
		t.Fatalf("status %d:\n%s", status, page)
	}
	if list := s.published(t, 1); len(list) != 1 || string(list[0].Args) != `[7,"1.10",{"to":5,"n":12345678901234567890}]` {
		t.Errorf("published %+v", list)
	}
}
