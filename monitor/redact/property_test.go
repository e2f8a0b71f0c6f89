package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/redact"
)

// mark is a character that stands in secrets only.
const mark = "Ж"

// dict keeps its order, as Python's.
type dict []item

type item struct {
	key   string
	value any
}

// drawText returns text with what delimits values in it. Secret text has the mark in it, several times.
func drawText(t *rapid.T, secret bool) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b c", "'", `"`, `\`, ",", ", ", ":", "=", "}", "]", ")", "{", "[", "(", "<", ">", "\n", "x=", "'a': ", `"b": `, "...", "é", "%", "&", ";",
	}), 0, 6).Draw(t, "text")
	if !secret {
		return strings.Join(parts, "")
	}
	return mark + strings.Join(parts, mark) + mark
}

// drawValue returns a value; within a secret one, all text is secret. Keys of secrets are drawn only outside of secrets.
func drawValue(t *rapid.T, depth int, secret bool) any {
	kinds := 4
	if depth == 0 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return drawText(t, secret)
	case 1:
		if secret {
			return drawText(t, secret)
		}
		return rapid.SampledFrom([]any{nil, true, 5, -1.5}).Draw(t, "word")
	case 2:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1, secret))
		}
		return list
	}
	return drawDict(t, depth, secret)
}

func drawDict(t *rapid.T, depth int, secret bool) dict {
	var d dict
	for i := range rapid.IntRange(0, 3).Draw(t, "items") {
		hidden := secret || rapid.Bool().Draw(t, "secret")
		key := fmt.Sprint("k", i)
		if hidden && !secret {
			key = rapid.SampledFrom([]string{"password", "apiKey", "X-Auth-Token", "client secret", "db.PASSWD"}).Draw(t, "key")
		}
		d = append(d, item{key, drawValue(t, depth-1, hidden)})
	}
	return d
}

// python writes a value as Python's repr does.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		q := "'"
		if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
			q = `"`
		}
		s := strings.ReplaceAll(v, `\`, `\\`)
		s = strings.ReplaceAll(s, "\n", `\n`)
		if q == "'" {
			s = strings.ReplaceAll(s, "'", `\'`)
		}
		return q + s + q
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = python(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case dict:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = python(v[i].key) + ": " + python(v[i].value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

// toJSON writes a value as Python's json.dumps does.
func toJSON(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = toJSON(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case dict:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = toJSON(v[i].key) + ": " + toJSON(v[i].value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// saferepr writes a value as Celery's saferepr does: cut, and without escaping backslashes.
func saferepr(v any) string { return celery.Repr(json.RawMessage(toJSON(v))) }

// TestNoSecretSurvives draws values with secrets under keys that a rule names, writes them in all ways that Umbel reads, also in
// a string of another and cut anywhere.
func TestNoSecretSurvives(t *testing.T) {
	t.Parallel()
	r := newRedactor(t)
	rapid.Check(t, func(t *rapid.T) {
		var v any = drawDict(t, 3, false)
		if rapid.Bool().Draw(t, "in a list") {
			v = []any{1, v, "end"}
		}
		ways := []func(any) string{python, saferepr, toJSON}
		text := rapid.SampledFrom(ways).Draw(t, "way")(v)
		switch rapid.IntRange(0, 3).Draw(t, "outer") {
		case 1:
			text = rapid.SampledFrom(ways[:2]).Draw(t, "outer way")([]any{text, "after"})
		case 2:
			text = toJSON(text)
		}
		if cut := rapid.IntRange(0, 2*len(text)).Draw(t, "cut"); cut < len(text) {
			for cut > 0 && !utf8.RuneStart(text[cut]) {
				cut--
			}
			text = text[:cut]
		}
		got := r.Text(text)
		if strings.Contains(got, mark) {
			t.Fatalf("a secret survives:\n   %s\n-> %s", text, got)
		}
	})
}

// TestNoSecretArgumentSurvives hides a positional argument.
func TestNoSecretArgumentSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 3).Draw(t, "position")
		var args []any
		for i := range n + rapid.IntRange(1, 2).Draw(t, "more") {
			args = append(args, drawValue(t, 2, i == n))
		}
		r, err := redact.New(redact.Options{Rules: []string{fmt.Sprintf("task x arg %d", n)}})
		if err != nil {
			t.Fatal(err)
		}
		text := rapid.SampledFrom([]func(any) string{python, saferepr, toJSON}).Draw(t, "way")(args)
		if cut := rapid.IntRange(0, 2*len(text)).Draw(t, "cut"); cut < len(text) {
			text = strings.ToValidUTF8(text[:cut], "")
		}
		if got := r.Task("x", redact.Call{Args: text}).Args; strings.Contains(got, mark) {
			t.Fatalf("argument %d survives:\n   %s\n-> %s", n, text, got)
		}
	})
}

// unfiltered is a rule that is too short to look for, so that keys and forms are looked for in every text.
const unfiltered = "key q"

// TestNothingIsOverlooked compares what is redacted with and without looking for parts of keys and forms first.
func TestNothingIsOverlooked(t *testing.T) {
	t.Parallel()
	rules := []string{"key größe_pin", "key *id", "key a*_card_b?", "task x key iban"}
	quick, thorough := newRedactor(t, rules...), newRedactor(t, append(rules, unfiltered)...)
	keys := []string{"größe_pin", "GRÖSSE-PIN", "Größe.pin", "id", "user-ID", "ax_card_bc", "A CARD BC", "iban", "bearer", "tickets", "passenger", "tokens"}
	for _, rule := range redact.Defaults() {
		keys = append(keys, strings.NewReplacer("key ", "", "*", "").Replace(rule))
	}
	random := "aB3dE6gH9jK2mN5pS8sT1vW4"
	parts := []string{
		"'", `"`, `\"`, `\\'`, ": ", "=", ", ", ":", " ", "(", "[", "{", "}", "\n", "\t", "x", "-", ".", "_", "é", "1", "None", "://u:p@h",
		"eyJ" + random + ".eyJ" + random, "sk-" + random, "ask-" + random, "xoxb-" + random + "-" + random, "SG." + random + "." + random,
		"hf_" + random, "123456789:AA" + random + random, "AKIA" + "ABCDEFGHIJ234567", "sk_live_" + random, "Bearer " + random, "&sig=" + random,
	}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "length") {
			if !rapid.Bool().Draw(t, "key") {
				text.WriteString(rapid.SampledFrom(parts).Draw(t, "part"))
				continue
			}
			key := rapid.SampledFrom(keys).Draw(t, "name")
			switch at := rapid.IntRange(0, len(key)-1).Draw(t, "at"); rapid.IntRange(0, 6).Draw(t, "way") {
			case 0:
				key = strings.ToUpper(key)
			case 1:
				key = key[:at] + fmt.Sprintf(`\u%04x`, key[at]) + key[at+1:]
			case 2:
				key = key[:at] + fmt.Sprintf(`\x%02x`, key[at]) + key[at+1:]
			case 3:
				key = strings.ReplaceAll(key, "_", rapid.SampledFrom([]string{"", "-", " ", "."}).Draw(t, "separator"))
			case 4:
				key = strings.NewReplacer("k", "\u212a", "i", "\u0130").Replace(key)
			}
			text.WriteString(key + rapid.SampledFrom([]string{"'", `"`, `\"`, ""}).Draw(t, "quote") + rapid.SampledFrom([]string{": 'v", "=v", ", 'v", " : v", "\t=v"}).Draw(t, "value"))
		}
		if got, want := quick.Text(text.String()), thorough.Text(text.String()); got != want {
			t.Fatalf("%q becomes\n%q, not\n%q", text.String(), got, want)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add(`{'password': 'x', "token": [1, {'a': b"c\'"}]}`)
	f.Add(`password=<a 'b\\\'`)
	r, thorough := newRedactor(f, "cards", "task x arg 1"), newRedactor(f, "cards", unfiltered)
	f.Fuzz(func(t *testing.T, s string) {
		got := r.Text(s)
		if want := thorough.Text(s); got != want && !strings.ContainsAny(s, `qQ\`) {
			t.Errorf("%q becomes %q, not %q", s, got, want)
		}
		if again := r.Text(got); len(again) > len(got)+len(s) {
			t.Errorf("%q grows to %q and %q", s, got, again)
		}
		r.Task("x", redact.Call{Args: s})
		r.Matching(s)
		r.Settings(json.RawMessage(s))
		r.JSON("", json.RawMessage(s))
	})
}
