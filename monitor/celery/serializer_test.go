package celery_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// kombu is Kombu, which reads and writes.
type kombu struct {
	in  io.Writer
	out *bufio.Reader
}

func startKombu(t *testing.T) *kombu {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.Python(t), "testdata/serializers.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &kombu{in, bufio.NewReader(out)}
}

// fataler is a test, or a case of one.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (k *kombu) ask(t fataler, request map[string]string, answer any) {
	t.Helper()
	b, err := json.Marshal(request)
	if err == nil {
		_, err = k.in.Write(append(b, '\n'))
	}
	var line []byte
	if err == nil {
		line, err = k.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	if err != nil {
		t.Fatalf("Kombu: %v", err)
	}
}

// equalJSON returns the difference between two texts of JSON, in which numbers stay as they are written.
func equalJSON(t fataler, want, got string) string {
	t.Helper()
	parse := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q is not JSON: %v", text, err)
		}
		return numbers(v)
	}
	return cmp.Diff(parse(want), parse(got))
}

// numbers turns floats into float64, and leaves integers as text.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return v
}

var mimes = map[celery.Serializer]string{celery.MessagePack: "application/x-msgpack", celery.YAML: "application/x-yaml"}

// What Kombu writes is read as what Kombu would write in JSON, and written so that Kombu reads the same again.
func TestKombuAndUmbelReadEachOther(t *testing.T) {
	t.Parallel()
	for serializer, mime := range mimes {
		t.Run(string(serializer), func(t *testing.T) {
			t.Parallel()
			k := startKombu(t)
			var written [][2]string
			k.ask(t, map[string]string{"write": string(serializer)}, &written)
			for _, pair := range written {
				body, err := base64.StdEncoding.DecodeString(pair[0])
				if err != nil {
					t.Fatal(err)
				}
				name := string(body[:min(len(body), 80)])
				m, err := celery.ParseMessage(broker.Publishing{
					ContentType: mime, Headers: map[string]any{"task": "add", "id": "i"}, Body: body,
				})
				if strings.Contains(pair[1], "Infinity") || len(body) > celery.MaxArguments {
					if err == nil {
						t.Errorf("%q was read, which cannot be published again", name)
					}
					continue
				}
				if err != nil {
					t.Errorf("read %q: %v", name, err)
					continue
				}
				if m.Serializer != serializer {
					t.Errorf("serializer %q", m.Serializer)
				}
				if diff := equalJSON(t, pair[1], string(m.Args)); diff != "" {
					t.Errorf("read %q (-Kombu +Umbel):\n%s", name, diff)
				}
				again(t, k, m, pair[1])
			}
		})
	}
}

// again publishes a message, and compares what Kombu reads.
func again(t fataler, k *kombu, m celery.Message, args string) {
	t.Helper()
	p, err := m.Publishing(time.Now())
	if err != nil {
		t.Fatalf("publish %s: %v", args, err)
	}
	if p.ContentType != mimes[m.Serializer] {
		t.Fatalf("content type %s", p.ContentType)
	}
	var got string
	k.ask(t, map[string]string{"read": string(m.Serializer), "body": base64.StdEncoding.EncodeToString(p.Body)}, &got)
	want := "[" + args + `, {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`
	if diff := equalJSON(t, want, got); diff != "" {
		t.Fatalf("%.300s is read differently (-Umbel +Kombu):\n%s", p.Body, diff)
	}
}

// Any arguments that Umbel publishes are read by Kombu, and by Umbel, as the same.
func TestAnyArgumentsInAnySerializer(t *testing.T) {
	t.Parallel()
	for serializer := range mimes {
		t.Run(string(serializer), func(t *testing.T) {
			t.Parallel()
			k := startKombu(t)
			rapid.Check(t, func(t *rapid.T) {
				b, err := json.Marshal([]any{anyValue(4).Draw(t, "value")})
				if err != nil {
					t.Fatal(err)
				}
				m := celery.Message{ID: "i", Name: "add", Args: b, Serializer: serializer}
				again(t, k, m, string(b))
				p, err := m.Publishing(time.Now())
				if err != nil {
					t.Fatal(err)
				}
				back, err := celery.ParseMessage(p)
				if err != nil {
					t.Fatal(err)
				}
				if diff := equalJSON(t, string(b), string(back.Args)); diff != "" {
					t.Fatalf("read back (-written +read):\n%s", diff)
				}
			})
		})
	}
}

// anyValue generates values of JSON that both serializers have.
func anyValue(depth int) *rapid.Generator[any] {
	text := rapid.Map(rapid.String(), func(s string) string { return strings.ToValidUTF8(s, "") })
	list := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), text.AsAny(),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return json.RawMessage(fmtFloat(f)) }),
		rapid.SampledFrom([]string{"yes", "~", "1e3", "0x1", "2020-01-01", "- a", "a: b", "?", "\u0085", "\U0001f600"}).AsAny(),
	}
	if depth > 0 {
		list = append(list,
			rapid.SliceOfN(anyValue(depth-1), 0, 4).AsAny(),
			rapid.Map(rapid.MapOfN(text, anyValue(depth-1), 0, 4), func(m map[string]any) any {
				delete(m, "__type__")
				return m
			}))
	}
	return rapid.OneOf(list...)
}

// fmtFloat writes a float with a point, so that it is none of Python's integers.
func fmtFloat(f float64) string {
	b, _ := json.Marshal(f)
	if !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return string(b)
}

func TestValuesThatASerializerDoesNotHave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		serializer celery.Serializer
		args, want string
	}{
		"a time in MessagePack":    {celery.MessagePack, `[{"a":{"__type__":"datetime","__value__":"2026-01-02T03:04:05"}}]`, "args[0].a: must not be a datetime"},
		"a large integer":          {celery.MessagePack, `[1, 18446744073709551616]`, "args[1]: must fit 64 bits"},
		"a Decimal in YAML":        {celery.YAML, `[{"__type__":"decimal","__value__":"1.5"}]`, "args[0]: must not be a decimal"},
		"a UUID in MessagePack":    {celery.MessagePack, `[{"__type__":"uuid","__value__":{"hex":"7d1e6a521b2c4d3e8f90a1b2c3d4e5f6"}}]`, "args[0]: must not be a uuid"},
		"a serializer that is not": {"pickle", `[]`, "serializer: must be json, msgpack or yaml"},
	} {
		_, err := celery.Message{ID: "i", Name: "add", Args: json.RawMessage(test.args), Serializer: test.serializer}.Publishing(time.Now())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// A task-sent event is read the same in every serializer.
func TestSentEventInEverySerializer(t *testing.T) {
	t.Parallel()
	m, now := celery.Message{ID: "i", Name: "add", Args: []byte(`["é", 1.5]`), Origin: "gen1@host"}, time.UnixMicro(1764000000_123456)
	p, err := m.Publishing(now)
	if err != nil {
		t.Fatal(err)
	}
	var want state.Event
	for _, serializer := range celery.Serializers() {
		e, err := m.SentEvent(p, "mail", 41, now, serializer)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := celery.SerializerOf(e.ContentType); got != serializer || !ok {
			t.Errorf("content type %s", e.ContentType)
		}
		var d celery.Decoder
		body, ok := d.JSON(e.ContentType, e.Body)
		var got []state.Event
		lost, cause := d.Decode(body, 1, func(e *state.Event) { got = append(got, *e) })
		if !ok || lost > 0 || len(got) != 1 || len(d.Rejected()) > 0 {
			t.Fatalf("%s: %d events, lost %d (%s), rejected %v\n%s", serializer, len(got), lost, cause, d.Rejected(), e.Body)
		}
		if serializer == celery.JSON {
			want = got[0]
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%s (-json +%[1]s):\n%s", serializer, diff)
		}
	}
}

func TestHostileYAML(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [" + strings.Repeat("x, ", 20) + "]\n"
	for i := 1; i < 20; i++ {
		before, this := string(rune('a'+i-1)), string(rune('a'+i))
		if i == 1 {
			before = "a0"
		}
		bomb += this + ": &" + this + " [" + strings.Repeat("*"+before+", ", 20) + "]\n"
	}
	for name, text := range map[string]string{
		"aliases":        bomb,
		"alias of self":  "&a [*a]",
		"lists":          strings.Repeat("[", 100_000),
		"closed lists":   strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000),
		"blocks":         strings.Repeat("- ", 50_000),
		"indents":        indents(1_000),
		"questions":      strings.Repeat("? ", 50_000),
		"mappings":       strings.Repeat("{a: ", 20_000),
		"comments":       strings.Repeat("#\n", 200_000),
		"long":           "[" + strings.Repeat("1, ", 1<<19) + "]",
		"documents":      "--- 1\n--- 2\n",
		"anchors":        strings.Repeat("&a ", 20_000),
		"binary":         "!!binary '*'",
		"list as a key":  "? [1]\n: 2",
		"long integer":   strings.Repeat("9", 5_000) + ": 1",
		"many integers":  "- " + strings.Repeat("1:", 5_000) + "1",
		"nothing":        "",
		"not UTF-8":      "a: \xff\xfe",
		"control":        "a: \x01",
		"open quote":     `"`,
		"unknown alias":  "*a",
		"directive":      "%YAML 9.9\n--- 1",
		"tab":            "a:\n\t- b",
		"long directive": "%" + strings.Repeat("a", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d celery.Decoder
			body, ok := d.JSON("application/x-yaml", []byte(text))
			if ok && !json.Valid(body) {
				t.Errorf("not JSON: %.100s", body)
			}
			if len(body) > 9<<20 {
				t.Errorf("%d bytes", len(body))
			}
		})
	}
}

// indents nests n blocks.
func indents(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestYAMLAsPyYAMLWritesIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"\uD800 a"`:                          "\"\ufffd a\"",
		"!!set\na: null\n":                    `{"a":null}`,
		"2026-01-02 03:04:05.000600+00:00":    `"2026-01-02T03:04:05.000600+00:00"`,
		"!!binary |\n  YWIA\n":                `"YWIA"`,
		"{1: a, yes: b}":                      `{"1":"a","true":"b"}`,
		"[0o7, 010, 0x1F, 0b11, 1:30, 1_000]": `["0o7",8,31,3,90,1000]`,
		"[1e3, 1.0e+3, .5, -.inf, .nan, 1.]":  `["1e3",1000.0,0.5,-Infinity,NaN,1.0]`,
		"[on, Off, y, n, ~, null, '', ]":      `[true,false,"y","n",null,null,""]`,
		"- &a [1]\n- *a\n":                    `[[1],[1]]`,
		"!!python/tuple [1]":                  `[1]`,
	} {
		var d celery.Decoder
		if got, ok := d.JSON("application/x-yaml", []byte(in)); string(got) != want || !ok {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// FuzzYAML checks that whatever is read becomes JSON.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"type: task-sent\nuuid: a\ntimestamp: 1.5\n", "- [1, 2]\n- {a: b}\n- null\n", "&a [*a]", "!!binary YQ==", "? a\n: b", "'''", "\"\\uD800\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d celery.Decoder
		body, ok := d.JSON("application/x-yaml", text)
		if !ok {
			return
		}
		if _, err := celery.StrictJSON(body); err != nil {
			t.Errorf("%q became %q: %v", text, body, err)
		}
		d.Decode(body, 1, func(*state.Event) {})
		if m, err := celery.ParseMessage(broker.Publishing{ContentType: "application/x-yaml", Headers: map[string]any{"task": "a", "id": "i"}, Body: text}); err == nil {
			if _, err := m.Publishing(time.Now()); err != nil && !strings.Contains(err.Error(), "embed") {
				t.Errorf("%q is read and cannot be published: %v", text, err)
			}
		}
	})
}
