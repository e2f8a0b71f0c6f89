package celery_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
)

func TestUnpickle(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ hex, want string }{
		"five":                  {"80054b052e", `5`},
		"text":                  {"80059507000000000000008c03616263942e", `"abc"`},
		"nothing":               {"80054e2e", `null`},
		"negative":              {"80044afbffffff2e", `-5`},
		"wider than 64 bits":    {"80028a09000000000000000001" + "2e", `18446744073709551616`},
		"protocol 0 boolean":    {hex.EncodeToString([]byte("I01\n.")), `true`},
		"protocol 0 integer":    {hex.EncodeToString([]byte("L12345678901234567890L\n.")), `12345678901234567890`},
		"protocol 0 float":      {hex.EncodeToString([]byte("F1.5\n.")), `1.5`},
		"protocol 0 text":       {hex.EncodeToString([]byte("V\\u6771\\u4eac\\n\np0\n.")), `"東京\\n"`},
		"protocol 0 list":       {hex.EncodeToString([]byte("(lp0\nI1\naI2\na.")), `[1,2]`},
		"protocol 0 dict":       {hex.EncodeToString([]byte("(dp0\nVa\np1\nI1\ns.")), `{"a":1}`},
		"text of Python 2":      {hex.EncodeToString([]byte("S'it\\'s'\n.")), `"it's"`},
		"not a number":          {"8004477ff80000000000002e", `"nan"`},
		"shared part":           {hex.EncodeToString([]byte("\x80\x02]q\x00(]q\x01h\x01e.")), `[[],[]]`},
		"keys that are no text": {hex.EncodeToString([]byte("\x80\x02}q\x00(K\x01K\x02NK\x03u.")), `{"1":2,"null":3}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := hex.DecodeString(test.hex)
			if err != nil {
				t.Fatal(err)
			}
			got, plain, err := celery.Unpickle(b)
			if err != nil || !plain {
				t.Fatalf("unpickle: %v, plain %v", err, plain)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnpickleRefusesDamage(t *testing.T) {
	t.Parallel()
	// Ten lists, each of ten times the one before: 10^10 elements.
	bomb := "\x80\x02]q\x00"
	for i := range 10 {
		bomb += "]q" + string(rune(i+1)) + "(" + strings.Repeat("h"+string(rune(i)), 10) + "e"
	}
	for name, pickle := range map[string]string{
		"empty":               "",
		"no stop":             "\x80\x04N",
		"nothing to return":   "\x80\x04.",
		"a mark to return":    "(.",
		"length beyond end":   "\x80\x04X\xff\xff\xff\x7fabc.",
		"length beyond limit": "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
		"unknown opcode":      "\xff.",
		"missing memo":        "h\x05.",
		"list in itself":      "]q\x00h\x00a.",
		"odd dict":            "(I1\nd.",
		"append to a number":  "I1\nI2\na.",
		"far larger unfolded": bomb + ".",
		"too many brackets":   strings.Repeat("(", 2<<20) + ".",
		"many digits":         "L" + strings.Repeat("9", 6000) + "L\n.",
	} {
		if got, _, err := celery.Unpickle([]byte(pickle)); err == nil || errors.Is(err, celery.ErrPythonObject) {
			t.Errorf("%s: %.40s, error %v, want it to be refused", name, got, err)
		}
	}
}

// TestUnpickleAgreesWithPython has Python pickle values in every protocol and print them as JSON.
func TestUnpickleAgreesWithPython(t *testing.T) {
	t.Parallel()
	const script = `
import json, pickle, random
r = random.Random(7)
def value(depth):
    kind = r.randrange(9 if depth < 4 else 6)
    if kind == 0: return None
    if kind == 1: return r.random() < .5
    if kind == 2: return r.choice([0, 255, 256, 65535, 65536, -1, 2**31, -2**31 - 1, 2**63, -2**200, r.randrange(10**6)])
    if kind == 3: return r.choice([0.5, -1e300, 3.141592653589793, 1e-7])
    if kind == 4: return ''.join(r.choice('a"\\\n\x00é東🎉') for _ in range(r.randrange(300)))
    if kind == 5: return ''
    if kind == 6: return [value(depth + 1) for _ in range(r.randrange(6))]
    if kind == 7: return tuple(value(depth + 1) for _ in range(r.randrange(5)))
    return {value(9) if r.random() < 0 else str(i): value(depth + 1) for i in range(r.randrange(5))}
for n in range(600):
    v = value(0)
    print(pickle.dumps(v, n % 6).hex())
    print(json.dumps(v))
`
	cmd := exec.CommandContext(t.Context(), testenv.Python(t), "-c", script)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run Python: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 1200 {
		t.Fatalf("%d lines, want 1,200", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		b, err := hex.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		got, plain, err := celery.Unpickle(b)
		if err != nil || !plain && !bytes.Contains(b, []byte("_codecs")) {
			t.Fatalf("unpickle %q: %v, plain %v", b, err, plain)
		}
		if diff := cmp.Diff(decodeNumbers(t, []byte(lines[i+1])), decodeNumbers(t, got)); diff != "" {
			t.Fatalf("pickle %q (-want +got):\n%s", b, diff)
		}
	}
}

func decodeNumbers(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %.80q: %v", b, err)
	}
	return normalNumbers(v)
}

// normalNumbers makes floats of all numbers that Python and Go spell differently.
func normalNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
		return v.String()
	case []any:
		for i := range v {
			v[i] = normalNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalNumbers(v[k])
		}
	}
	return v
}

func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x05K\x05."))
	f.Add([]byte("(lp0\nI1\naI2\na."))
	f.Add([]byte("\x80\x02}q\x00(K\x01K\x02u."))
	f.Add([]byte("cos\nsystem\nq\x00(h\x00tR(S'a'\nI1\ndb."))
	f.Add([]byte("\x80\x04\x8c\x08datetime\x8c\x08datetime\x93C\x0a\x07\xea\x0b\x15\x09\x05\x03\x00\x00\x00\x85R."))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := celery.Unpickle(b)
		if err == nil && !json.Valid(v) {
			t.Errorf("unpickle %q: no JSON: %q", b, v)
		}
	})
}
