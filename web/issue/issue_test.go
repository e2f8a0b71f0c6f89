package issue_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/issue"
)

func TestURLHasEscapedValues(t *testing.T) {
	t.Parallel()
	tmpl, err := issue.Parse("https://tracker.example/p/{name}/new?title={title}&body={body}&n={count}&e={exception}&from={url}#form")
	if err != nil {
		t.Fatal(err)
	}
	v := issue.Values{
		Title: "a & b = c #1 {body}", Body: "line\n\"quoted\" <b> 100 % ü", Name: "shop/pay?x", Exception: "ValueError", URL: "https://ops.example/f?a=1&b=2", Count: "10,000+",
	}
	link := tmpl.URL(v)
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "tracker.example" || u.Host != tmpl.Host() || u.EscapedPath() != "/p/shop%2Fpay%3Fx/new" || u.Fragment != "form" {
		t.Errorf("URL = %s", link)
	}
	want := map[string]string{"title": v.Title, "body": v.Body, "n": v.Count, "e": v.Exception, "from": v.URL}
	for name, text := range want {
		if got := u.Query()[name]; len(got) != 1 || got[0] != text {
			t.Errorf("%s = %q, want %q", name, got, text)
		}
	}
	v.Title, v.Body = strings.Repeat("ü", 5_000), strings.Repeat("\n", 50_000)
	if link = tmpl.URL(v); len(link) > 8_000 {
		t.Errorf("URL has %d bytes, want at most 8,000", len(link))
	}
}

func TestParseRefusesOtherTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"javascript:alert({title})":                                         "http://",
		"//tracker.example/{title}":                                         "http://",
		"mailto:ops@example.org?subject={title}":                            "http://",
		"https:///new?title={title}":                                        "host",
		"https://{name}.example/new":                                        "placeholder within the host",
		"https://tracker.example{url}/new":                                  "placeholder within the host",
		"https://me:secret@tracker.example/{title}":                         "password",
		"https://tracker.example/new?t={Title}":                             "{Title} is unknown",
		"https://tracker.example/" + strings.Repeat("x", issue.MaxTemplate): "bytes",
		"": "http://",
	} {
		if _, err := issue.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.60q): %v, want an error with %q", text, err, want)
		}
	}
}
