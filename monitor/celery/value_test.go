package celery_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
)

func TestReadRepr(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in, text     string // text is in, if empty
		json, python bool
		cut          bool
	}{
		"literals":         {in: `(1, 'a', [True, None], {'b': 1.5})`, json: true, python: true},
		"tuple of one":     {in: `(1,)`, json: true, python: true},
		"empty":            {in: `{}`, json: true, python: true},
		"big integer":      {in: `[123456789012345678901234567890]`, json: true, python: true},
		"quotes":           {in: `['it\'s']`, text: `["it's"]`, json: true, python: true},
		"line break":       {in: "('a\nb',)", text: `('a\nb',)`, json: true, python: true},
		"double quotes":    {in: `("it's",)`, json: true, python: true},
		"backslash":        {in: `('C:\new',)`, text: `('C:\\new',)`},
		"object":           {in: `(<Order: 1, 'x'>, 2)`},
		"Decimal":          {in: `(Decimal('1.10'), 2)`, python: true},
		"datetime":         {in: `{'at': datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)}`, python: true},
		"bytes":            {in: `(b'a',)`, python: true},
		"set":              {in: `{1, 2}`, python: true},
		"keys of numbers":  {in: `{1: 2}`, python: true},
		"key twice":        {in: `{'a': 1, 'a': 2}`, python: true},
		"nan":              {in: `[nan, inf, -inf]`},
		"complex":          {in: `((1+2j), 1)`, python: true},
		"cut list":         {in: `[0, 1, ...]`, cut: true},
		"cut dict":         {in: `{'a': 1, ...}`, cut: true},
		"cut level":        {in: `([[[...]]], {'a': {...}})`, cut: true},
		"cut text":         {in: `('abc...', ...)`, cut: true},
		"hidden":           {in: `('***',)`, cut: true},
		"cut number":       {in: `(12...,)`, cut: true},
		"text of brackets": {in: `('), (', ']')`, json: true, python: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, ok := celery.ReadRepr(tt.in)
			if !ok {
				t.Fatalf("%s was not read", tt.in)
			}
			want := tt.text
			if want == "" {
				want = tt.in
			}
			if got := v.String(); got != want {
				t.Errorf("text = %s, want %s", got, want)
			}
			_, isJSON := v.JSON()
			if _, isPython := v.Python(); isJSON != tt.json || isPython != tt.python || v.Cut() != tt.cut {
				t.Errorf("JSON %v, Python %v, cut %v; want %v, %v, %v", isJSON, isPython, v.Cut(), tt.json, tt.python, tt.cut)
			}
		})
	}
	for name, in := range map[string]string{
		"nothing": ``, "unbalanced": `(1, 2`, "more after it": `(1,) `, "parentheses": `(1)`, "quote at an end": `('a\', 'b')`,
		"no space": `[1,2]`, "unclosed object": `(<Order: 1)`, "words": `(an order,)`, "not UTF-8": "('\xff',)", "comma": `[1, ]`,
		"deep": strings.Repeat("[", 1000), "many": "[" + strings.Repeat("1, ", 20_000) + "1]", "unclosed call": `(f(1, 2`,
	} {
		if v, ok := celery.ReadRepr(in); ok {
			t.Errorf("%s: %s was read as %s", name, in, v.String())
		}
	}
}

// What can be sent again must be the same by both readers.
func FuzzReadRepr(f *testing.F) {
	for _, s := range []string{`(1, 'a')`, `{'a': [1.5, None]}`, `('it\'s',)`, `(Decimal('1'), <a b>)`, `['\\']`, `[0, ...]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, repr string) {
		v, read := celery.ReadRepr(repr)
		strict, ok := celery.ParseRepr(repr)
		if !ok {
			return
		}
		if !read {
			if len(repr) < 20_000 {
				t.Fatalf("%q was read by ParseRepr alone", repr)
			}
			return
		}
		got, isJSON := v.JSON()
		var a, b bytes.Buffer
		if !isJSON || json.Compact(&a, got) != nil || json.Compact(&b, strict) != nil || a.String() != b.String() {
			t.Fatalf("%q as JSON: %s, %v, want %s", repr, got, isJSON, strict)
		}
	})
}

func TestHostileReprsAreReadInLittleTime(t *testing.T) {
	t.Parallel()
	for name, repr := range hostileReprs(64 << 10) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v, ok := celery.ReadRepr(repr); ok {
				_, _ = v.JSON()
				_ = v.String()
			}
		})
	}
}
