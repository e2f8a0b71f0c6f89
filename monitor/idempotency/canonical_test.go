package idempotency_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// What Python 3.11 prints for json.dumps(json.loads(in), sort_keys=True, separators=(",", ":")).
func TestCanonicalFormIsPythons(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		` { "b" : [ 1 , 2.50 ] , "a" : null } `:                        `{"a":null,"b":[1,2.5]}`,
		`[1e16, 10000000000000000.0, 10000000000000000]`:               `[1e+16,1e+16,10000000000000000]`,
		`[9999999999999998.0, 0.0001, 0.00001, 1e22]`:                  `[9999999999999998.0,0.0001,1e-05,1e+22]`,
		`[-0, -0.0, 0.0, 1E400, -1e400, 1e-400, 5e-324]`:               `[0,-0.0,0.0,Infinity,-Infinity,0.0,5e-324]`,
		`[NaN, Infinity, -Infinity]`:                                   `[NaN,Infinity,-Infinity]`,
		`[true, false, null, "", [], {}]`:                              `[true,false,null,"",[],{}]`,
		`"\u00fc\u20ac\/\u007f\b\f\n\r\t\u0000\"\\"`:                   `"\u00fc\u20ac/\u007f\b\f\n\r\t\u0000\"\\"`,
		`"ü€😀\ud83d\ude00"`:                                            `"\u00fc\u20ac\ud83d\ude00\ud83d\ude00"`,
		`["\ud800", "\udc00\ud800", "\ud800\u0041"]`:                   `["\ud800","\udc00\ud800","\ud800A"]`,
		"\"\xed\xa0\x80\xed\xb0\x80\"":                                 `"\ud800\udc00"`,
		`{"a": 1, "b": 2, "a": 3}`:                                     `{"a":3,"b":2}`,
		`{"\uffff": 1, "\ud83d\ude00": 2, "\ud83d": 3}`:                `{"\ud83d":3,"\uffff":1,"\ud83d\ude00":2}`,
		`{"a\u0000": 1, "a": 2, "": 3, "abcdefgh1": 4, "abcdefgh": 5}`: `{"":3,"a":2,"a\u0000":1,"abcdefgh":5,"abcdefgh1":4}`,
		"\ufeff1": `1`,
		"[2" + strings.Repeat("3", 12_000) + "e-900, 2" + strings.Repeat("3", 12_000) + "e-12000]": `[Infinity,2.3333333333333335]`,
	} {
		t.Run(fmt.Sprintf("%.60s", in), func(t *testing.T) {
			t.Parallel()
			got, err := idempotency.Parse([]byte(in))
			if err != nil || got.String() != want {
				t.Errorf("got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
}

func TestParseRefusesWhatPythonRefuses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                       `is not JSON: a value expected at the end`,
		`{`:                      `is not JSON: a key in quotes expected at the end`,
		`{"a" 1}`:                `is not JSON: ":" expected at byte 5`,
		`[1,]`:                   `[1]: is not JSON: a value expected at byte 3`,
		`{"a":1,}`:               `is not JSON: a key in quotes expected at byte 7`,
		`{1: 2}`:                 `is not JSON: a key in quotes expected at byte 1`,
		`01`:                     `is not JSON: nothing more expected at byte 1`,
		`1.`:                     `is not JSON: nothing more expected at byte 1`,
		`[1e]`:                   `is not JSON: "," or "]" expected at byte 2`,
		`-`:                      `is not JSON: a digit expected at the end`,
		`+1`:                     `is not JSON: a value expected at byte 0`,
		`nan`:                    `is not JSON: a value expected at byte 0`,
		`{"a": ["\x"]}`:          `a[0]: is not JSON: an escaped character expected at byte 9`,
		`"\u12"`:                 `is not JSON: four hexadecimal digits expected at byte 3`,
		"\"\t\"":                 `is not JSON: no control character in a string expected at byte 1`,
		"\"\xff\"":               `is not UTF-8 at byte 1`,
		`'a'`:                    `is not JSON: a value expected at byte 0`,
		`__import__("x")`:        `is not JSON: a value expected at byte 0`,
		strings.Repeat("[", 501): strings.Repeat("[0]", 101),
	} {
		t.Run(fmt.Sprintf("%.20s", in), func(t *testing.T) {
			t.Parallel()
			if _, err := idempotency.Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestValueOf(t *testing.T) {
	t.Parallel()
	type named string
	loop := map[string]any{}
	loop["again"] = loop
	tests := map[string]struct {
		in         any
		want, fail string
	}{
		"nil":                     {nil, `null`, ``},
		"scalars":                 {[]any{true, 1, uint8(2), 3.0, float32(0.5), "ü", named("n"), math.NaN()}, `[true,1,2,3.0,0.5,"\u00fc","n",NaN]`, ``},
		"big":                     {new(big.Int).Lsh(big.NewInt(1), 100), `1267650600228229401496703205376`, ``},
		"map":                     {map[string][]int{"b": {1}, "a": nil}, `{"a":null,"b":[1]}`, ``},
		"integer keys":            {map[int]string{10: "a", 9: "b"}, `{"9":"b","10":"a"}`, ``},
		"numbers as keys":         {map[any]any{2: 0, 1.5: 1, false: 2, math.Inf(-1): 3}, `{"-Infinity":3,"false":2,"1.5":1,"2":0}`, ``},
		"None as key":             {map[any]any{nil: 0}, `{"null":0}`, ``},
		"NaN as key":              {map[float64]int{math.NaN(): 0}, `{"NaN":0}`, ``},
		"mixed keys":              {map[string]any{"a": []any{0, map[any]any{"x": 0, 1: 1}}}, ``, `a[1]: has keys that are numbers and keys that are str, which Python cannot sort`},
		"None and text":           {map[any]any{nil: 0, "a": 0}, ``, `has keys that are None and keys that are str, which Python cannot sort`},
		"equal keys":              {map[any]any{1: 0, true: 0}, ``, `has the keys 1 and true, which are one for Python`},
		"large equal keys":        {map[any]any{1 << 53: 0, float64(1<<53) + 0: 0}, ``, `has the keys 9007199254740992 and 9007199254740992.0, which are one for Python`},
		"keys beyond floats":      {map[any]any{1<<53 + 1: 0, float64(1 << 53): 1}, `{"9007199254740992.0":1,"9007199254740993":0}`, ``},
		"several NaN":             {map[float64]int{math.NaN(): 0, 1: 1}, ``, `has NaN as one of its keys, which Python cannot sort`},
		"struct":                  {map[string]any{"at": struct{}{}}, ``, `at: is a struct {}, which JSON does not have`},
		"bytes":                   {[]byte("a"), ``, `is bytes, which JSON does not have`},
		"not UTF-8":               {map[string]any{"a b": "\xff"}, ``, `["a b"]: must be UTF-8`},
		"a map that holds itself": {loop, ``, `nests deeper than 500 levels`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := idempotency.ValueOf(tt.in)
			switch {
			case tt.fail == "" && (err != nil || got.String() != tt.want):
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			case tt.fail != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.fail)):
				t.Errorf("got error %v, want %s", err, tt.fail)
			}
		})
	}
}
