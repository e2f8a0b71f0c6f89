package flower_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/flower"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query string
		want  map[string]string
	}{
		"none":                  {"", map[string]string{}},
		"last counts":           {"n=1&n=2", map[string]string{"n": "2"}},
		"stripped":              {"n=+%09x%20", map[string]string{"n": "x"}},
		"control characters":    {"n=a%00b%1Fc%0Ad", map[string]string{"n": "a b c\nd"}},
		"not escaped for HTML":  {"queue=a%26b%3Cc%3E%22%27", map[string]string{"queue": `a&b<c>"'`}},
		"no value":              {"a&b=&=c", map[string]string{"a": "", "b": "", "": "c"}},
		"escapes that are none": {"n=100%&m=%zz%41", map[string]string{"n": "100%", "m": "%zzA"}},
		"semicolon":             {"n=a;b", map[string]string{"n": "a;b"}},
		"brackets":              {"search[value]=x&order%5B0%5D%5Bdir%5D=desc", map[string]string{"search[value]": "x", "order[0][dir]": "desc"}},
	}
	for name, tt := range tests {
		got, err := flower.Arguments(tt.query)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := flower.Arguments("n=%ff"); err == nil {
		t.Error("text that is no UTF-8 is accepted")
	}
}

func FuzzArguments(f *testing.F) {
	for _, query := range []string{"a=b", "a=%41+%zz&b", "&&=", "n=%ff", "a;b=c"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := flower.Arguments(query)
		for name, value := range got {
			if !utf8.ValidString(value) || strings.TrimSpace(value) != value || strings.ContainsAny(value, "\x00\x1f") {
				t.Errorf("%q: %q = %q", query, name, value)
			}
		}
		if err != nil || strings.Contains(query, ";") {
			return
		}
		want, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		for name := range want {
			if _, ok := got[name]; !ok {
				t.Errorf("%q: %q is lost", query, name)
			}
		}
	})
}

func TestJSONIsPythons(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"a":1,"b":[1,2.5,null,true]}`:    `{"a": 1, "b": [1, 2.5, null, true]}`,
		`"☃ 😀 \u007f </a> \b\f\n\r\t\\\""`: `"\u2603 \ud83d\ude00 \u007f <\/a> \b\f\n\r\t\\\""`,
		`[ ]`:                              `[]`,
		`{"a":`:                            `null`,
		`"a,b:c"`:                          `"a,b:c"`,
	}
	for in, want := range tests {
		if got := flower.Encode([]byte(in)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
