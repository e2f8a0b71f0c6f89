package celery_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
)

func TestRepr(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"empty tuple":      {`[]`, `()`},
		"one":              {`[1]`, `(1,)`},
		"two":              {`[1, "a"]`, `(1, 'a')`},
		"list inside":      {`[[1]]`, `([1],)`},
		"dict":             {`{"a": true, "b": null}`, `{'a': True, 'b': None}`},
		"floats":           {`[1.0, 1e22, 1E5, 0.0001, 1e-5, -0.0]`, `(1.0, 1e+22, 100000.0, 0.0001, 1e-05, -0.0)`},
		"integers":         {`[-0, 123456789012345678901234567890]`, `(0, 123456789012345678901234567890)`},
		"quotes":           {`["it's", "\"", "\\", "\n"]`, `('it\'s', '"', '\', '` + "\n" + `')`},
		"levels":           {`[[[[1]]], {"a": {"b": {}}}]`, `([[[...]]], {'a': {'b': {...}}})`},
		"at the limit":     {`["` + strings.Repeat("a", 1022) + `", 1]`, `('` + strings.Repeat("a", 1022) + `', ...)`},
		"cut at a space":   {`["` + strings.Repeat("a", 900) + " " + strings.Repeat("b", 900) + `"]`, `('` + strings.Repeat("a", 900) + `...',)`},
		"characters count": {`["` + strings.Repeat("ü", 1100) + `"]`, `('` + strings.Repeat("ü", 1023) + `...',)`},
		"no JSON":          {`nan`, `nan`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := celery.Repr(json.RawMessage(tt.in)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"tuple":           {`(1, 'a')`, `[1,"a"]`},
		"tuple of one":    {`(1,)`, `[1]`},
		"empty":           {`()`, `[]`},
		"list":            {`[1, [2, (3,)], {}]`, `[1,[2,[3]],{}]`},
		"dict":            {`{'a': None, 'b': {'c': [True, False]}}`, `{"a":null,"b":{"c":[true,false]}}`},
		"numbers":         {`(0, -1, 1.5, 1e+22, 1e-05, 123456789012345678901234567890)`, `[0,-1,1.5,1e+22,1e-05,123456789012345678901234567890]`},
		"text":            {"('it\\'s <ü> \"x\"\n', '')", `["it's \u003cü\u003e \"x\"\n",""]`},
		"dots within":     {`('a...b',)`, `["a...b"]`},
		"brackets within": {`('(', ')', ', ', '{')`, `["(",")",", ","{"]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := celery.ParseRepr(tt.in)
			var compact, want bytes.Buffer
			if !ok || json.Compact(&compact, got) != nil || json.Compact(&want, []byte(tt.want)) != nil {
				t.Fatalf("Literal(%s) = %s, %v, want %s", tt.in, got, ok, tt.want)
			}
			if diff := cmp.Diff(parsed(t, got), parsed(t, json.RawMessage(tt.want))); diff != "" {
				t.Errorf("got - want +\n%s", diff)
			}
		})
	}
}

func TestLiteralRefuses(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"nothing":             ``,
		"parentheses":         `(1)`,
		"comma at the end":    `(1, 2,)`,
		"list with a comma":   `[1,]`,
		"unbalanced":          `(1, 2`,
		"too balanced":        `(1, 2))`,
		"more after it":       `(1,) `,
		"cut list":            `[0, 1, 2, ...]`,
		"cut number":          `(12..., ...)`,
		"cut text":            `('abc...',)`,
		"cut text, ellipsis":  `('abc…',)`,
		"cut key":             `{'abc...': 1}`,
		"cut level":           `([[[...]]],)`,
		"bytes":               `(b'a',)`,
		"set":                 `({1, 2},)`,
		"empty set":           `(set(),)`,
		"key of a number":     `{1: 2}`,
		"key twice":           `{'a': 1, 'a': 2}`,
		"Decimal":             `(Decimal('1.10'),)`,
		"datetime":            `(datetime.datetime(2026, 1, 1),)`,
		"object":              `(<Order: 1>,)`,
		"NaN":                 `(nan,)`,
		"infinity":            `(inf,)`,
		"complex":             `((1+2j),)`,
		"underscores":         `(1_000,)`,
		"leading zero":        `(01,)`,
		"hexadecimal":         `(0x1f,)`,
		"not Python's float":  `(1e5,)`,
		"overflow":            `(1e999,)`,
		"JSON":                `[true, null]`,
		"double quotes":       `("a",)`,
		"unclosed text":       `('a`,
		"backslash":           `('a\nb',)`,
		"backslash at an end": `('a\', 'b')`,
		"two backslashes":     `('a\\',)`,
		"quote at an end":     `('a\')`,
		"hidden":              `('***',)`,
		"lost character":      "('\uFFFD',)",
		"not UTF-8":           "('\xff',)",
		"no space":            `(1,2)`,
		"recursion":           `(<Recursion on list with id=1>,)`,
		"deep":                strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := celery.ParseRepr(in); ok {
				t.Errorf("Literal(%s) = %s, want none", in, got)
			}
		})
	}
}

// TestReprAndLiteralAgreeWithPython compares with Celery itself: Repr writes what saferepr does, cuts included, and
// Literal reads from it the value that was written, or nothing.
func TestReprAndLiteralAgreeWithPython(t *testing.T) {
	t.Parallel()
	python := testenv.Python(t)
	r := rand.New(rand.NewPCG(1, 2))
	var in bytes.Buffer
	lines := make([]string, 3_000)
	for i := range lines {
		args := make([]any, r.IntN(6))
		for j := range args {
			args[j] = randomValue(r, 5, 1+r.IntN(40))
		}
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = string(b)
		in.WriteString(lines[i] + "\n")
	}
	c := exec.CommandContext(t.Context(), python, "testdata/saferepr.py")
	c.Stdin = &in
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<20)
	read, complete, wrong := 0, 0, 0
	for i := 0; s.Scan(); i++ {
		var answer struct {
			Repr string
			Read *string
		}
		if err := json.Unmarshal(s.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if got := celery.Repr(json.RawMessage(lines[i])); got != answer.Repr {
			t.Errorf("repr of %s:\ngot  %s\nwant %s", lines[i], got, answer.Repr)
			wrong++
		}
		if got, ok := celery.ParseRepr(answer.Repr); ok {
			read++
			if diff := cmp.Diff(parsed(t, got), parsed(t, json.RawMessage(lines[i]))); diff != "" {
				t.Errorf("literal %s: got - want +\n%s", answer.Repr, diff)
				wrong++
			}
		} else if answer.Read != nil && cmp.Equal(parsed(t, json.RawMessage(*answer.Read)), parsed(t, json.RawMessage(lines[i]))) &&
			!strings.ContainsAny(answer.Repr, `\`) && !strings.Contains(answer.Repr, "...") {
			complete++
			t.Errorf("literal %s was not read", answer.Repr)
		}
		if wrong+complete > 5 {
			t.FailNow()
		}
	}
	if read < 500 {
		t.Errorf("%d literals were read, want 500 at least", read)
	}
}

// parsed is JSON as a value, with numbers as they compare.
func parsed(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// randomValue is a value of JSON with texts of up to size words.
func randomValue(r *rand.Rand, depth, size int) any {
	switch n := r.IntN(10); {
	case n < 2 && depth > 0:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1, size)
		}
		return list
	case n < 4 && depth > 0:
		object := make(map[string]any)
		for range r.IntN(4) {
			object[randomText(r, 3)] = randomValue(r, depth-1, size)
		}
		return object
	case n < 5:
		return r.Int64()>>r.IntN(63) - 5
	case n < 6:
		return json.Number(floats[r.IntN(len(floats))])
	case n < 7:
		return r.NormFloat64() * 1e3
	case n < 8:
		return []any{nil, true, false}[r.IntN(3)]
	default:
		return randomText(r, size)
	}
}

var (
	floats = []string{"1.0", "-0.5", "1e+22", "1e-07", "123456.789", "5e-324", "1.7976931348623157e+308", "-0.0", "9999999999999998.0"}
	words  = []string{"a", " ", "it's", "ü", "☃", "😀", `"`, "(", ", ", "': ", "...", "x\ny", "longer words", "nan", "None", "0", `\`}
)

func randomText(r *rand.Rand, size int) string {
	var b strings.Builder
	for range r.IntN(size + 1) {
		n := len(words)
		if r.IntN(20) > 0 {
			n-- // backslashes hide what Literal would read
		}
		b.WriteString(words[r.IntN(n)])
	}
	return b.String()
}

// FuzzLiteral checks that what is read is JSON, and stands for the text that it was read from.
func FuzzLiteral(f *testing.F) {
	f.Add(`(1, 'a')`)
	f.Add(`{'a': ([1.5, None],)}`)
	f.Add(`('a\'b', '…')`)
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := celery.ParseRepr(in)
		if !ok {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("Literal(%q) = %s, no JSON", in, got)
		}
		if len(in) < 1000 && strings.Count(in, "[")+strings.Count(in, "{") < 2 && strings.HasPrefix(in, "(") && strings.Count(in, "(") == 1 {
			if back := celery.Repr(got); back != in {
				t.Fatalf("Repr(Literal(%q)) = %q", in, back)
			}
		}
	})
}

func TestReprObjects(t *testing.T) {
	t.Parallel()
	for repr, want := range map[string]string{
		"(Decimal('12.50'), 1)":                                `[{"__type__":"decimal","__value__":"12.50"},1]`,
		"{'id': UUID('4b0f2b0e-6b1a-4b0e-8b1a-4b0f2b0e6b1a')}": `{"id":{"__type__":"uuid","__value__":{"hex":"4b0f2b0e6b1a4b0e8b1a4b0f2b0e6b1a"}}}`,
		"[datetime.date(2026, 1, 2)]":                          `[{"__type__":"date","__value__":"2026-01-02"}]`,
		"[datetime.datetime(2026, 1, 2, 3, 4)]":                `[{"__type__":"datetime","__value__":"2026-01-02T03:04:00"}]`,
		"[datetime.datetime(2026, 1, 2, 3, 4, 5, 6)]":          `[{"__type__":"datetime","__value__":"2026-01-02T03:04:05.000006"}]`,
		"(Decimal('x'),)":                                      "",
		"(Decimal('1...'),)":                                   "",
		"(Decimal(1),)":                                        "",
		"(UUID('4b0f2b0e'),)":                                  "",
		"[datetime.date(2026, 2, 30)]":                         "",
		"[datetime.date(2026, 1, 2, 3)]":                       "",
		"[datetime.datetime(2026, 1, 2)]":                      "",
		"[datetime.datetime(2026, 1, 2, 3, 4, tzinfo=UTC)]":    "",
		"[datetime.date(99999999999999999999, 1, 2)]":          "",
		"(<User 1>,)":                                          "",
		"(Decimal('1'":                                         "",
	} {
		got, ok := celery.ParseReprObjects(repr)
		if ok != (want != "") || string(got) != want {
			t.Errorf("ParseReprObjects(%s) = %s, %v, want %s", repr, got, ok, want)
		}
		if _, ok := celery.ParseRepr(repr); ok {
			t.Errorf("ParseRepr(%s) takes an object", repr)
		}
	}
}
