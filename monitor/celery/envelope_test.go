package celery_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// kombuTask is a task as Kombu 5.7 pushes it, after a worker has lost it once.
const kombuTask = `{"body": "W1sxLCAyXSwge30sIHsiY2FsbGJhY2tzIjogbnVsbH1d", "content-encoding": "utf-8", "content-type": "application/json", ` +
	`"headers": {"lang": "py", "task": "tasks.add", "id": "8eccb678", "retries": 0, "eta": null, "timelimit": [null, 2.5], ` +
	`"stamps": {"a": ["b"]}, "redelivered": true, "big": 123456789012345678901234567890, "nan": NaN}, ` +
	`"properties": {"correlation_id": "8eccb678", "reply_to": "9a1c", "delivery_mode": 2, "expiration": "600000", ` +
	`"delivery_info": {"exchange": "", "routing_key": "celery", "redelivered": true}, "priority": 6, "body_encoding": "base64", ` +
	`"delivery_tag": "7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11"}}`

func TestParseEnvelope(t *testing.T) {
	t.Parallel()
	got, err := celery.ParseEnvelope([]byte(kombuTask))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	want := celery.Envelope{
		Publishing: broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: "8eccb678", ReplyTo: "9a1c",
			Expiration: "600000", Priority: 6, Persistent: true, Body: []byte(`[[1, 2], {}, {"callbacks": null}]`),
			Headers: map[string]any{
				"lang": "py", "task": "tasks.add", "id": "8eccb678", "retries": int64(0), "eta": nil,
				"timelimit": []any{nil, 2.5}, "stamps": map[string]any{"a": []any{"b"}}, "redelivered": true,
				"big": 123456789012345678901234567890., "nan": nil,
			},
		},
		RoutingKey: "celery", DeliveryTag: "7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	z := zlib.NewWriter(&zipped)
	_, _ = z.Write([]byte("zipped"))
	_ = z.Close()
	message := func(body string) broker.Message { return broker.Message{Body: []byte(body)} }
	tests := map[string]struct {
		text string
		want broker.Message
	}{
		"base64":             {`{"body": "aGk=", "properties": {"body_encoding": "base64"}}`, message("hi")},
		"base64 in capitals": {`{"body": "aGk=", "properties": {"body_encoding": "BASE64"}}`, message("hi")},
		"without spaces":     {`{"body":"aGk=","properties":{"body_encoding":"base64"}}`, message("hi")},
		"body last":          {`{"properties": {"body_encoding": "base64"}, "body": "aGk="}`, message("hi")},
		"body alone":         {`{"body": "{}"}`, message("{}")},
		"text":               {`{"body": "{\"a\": \"\\u00fc\"}", "properties": {"body_encoding": "utf-8"}}`, message(`{"a": "\u00fc"}`)},
		"no encoding":        {`{"body": "[]", "properties": {"body_encoding": null}}`, message("[]")},
		"empty":              {`{"body": "", "headers": {}, "properties": {"body_encoding": "base64"}}`, message("")},
		"twice: the last":    {`{"body": "aGk=", "body": "[]"}`, message("[]")},
		"odd values":         {`{"body": "x", "headers": null, "properties": 7, "content-type": {"a": 1}}`, message("x")},
		"odd properties":     {`{"body": "x", "properties": {"delivery_info": "?", "priority": "high", "delivery_tag": []}}`, message("x")},
		"escapes in body":    {`{"body": "a\/b", "headers": {}}`, message("a/b")},
		"unknown keys":       {`{"body": "x", "more": [1, {"a": [null]}], "properties": {"x": {"y": 1}}}`, message("x")},
		"properties of an event": {
			`{"body": "e30=", "content-encoding": "utf-8", "content-type": "application/json", "headers": {"hostname": "w1"}, ` +
				`"properties": {"delivery_mode": 1, "delivery_info": {"exchange": "celeryev", "routing_key": "task.sent"}, "priority": 0, "body_encoding": "base64", "delivery_tag": "1"}}`,
			broker.Message{Body: []byte("{}"), ContentType: "application/json", ContentEncoding: "utf-8", RoutingKey: "task.sent"},
		},
		"compressed": {
			`{"body": "` + base64.StdEncoding.EncodeToString(zipped.Bytes()) +
				`", "headers": {"compression": "application/x-gzip"}, "properties": {"body_encoding": "base64"}}`,
			message("zipped"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o celery.EnvelopeParser
			var got broker.Message
			for range 2 { // the second time from memory
				var err error
				if got, err = o.Parse([]byte(test.text)); err != nil {
					t.Fatalf("open: %v", err)
				}
				if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			whole, err := celery.ParseEnvelope([]byte(test.text))
			if err != nil {
				t.Fatalf("parse whole: %v", err)
			}
			if name != "compressed" && !bytes.Equal(whole.Body, got.Body) {
				t.Errorf("ParseEnvelope has the body %q, Open %q", whole.Body, got.Body)
			}
		})
	}
}

// TestOpenManyKinds opens envelopes that differ in one thing each, all of them twice and in turns.
func TestOpenManyKinds(t *testing.T) {
	t.Parallel()
	tag := strings.NewReplacer("7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11", "00000000-0000-4000-8000-000000000000")
	odd := strings.NewReplacer(`7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11`, `\",\"x\":{\"0000000000000000000000000`)
	broken := strings.NewReplacer(`7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11`, `", "x": "0000000000000000000000000000`)
	key := strings.NewReplacer("task.received", "task.sent")
	mime := strings.NewReplacer("application/json", "application/x-yaml")
	text := strings.NewReplacer(`"body_encoding": "base64"`, `"body_encoding": "utf-8"`)
	var o celery.EnvelopeParser
	for range 2 {
		for _, r := range []*strings.Replacer{tag, odd, broken, key, mime, text, strings.NewReplacer()} {
			payload := []byte(r.Replace(kombuEvent))
			e, err := celery.ParseEnvelope(payload)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			want := broker.Message{
				Body: e.Body, ContentType: e.ContentType, ContentEncoding: e.ContentEncoding, RoutingKey: e.RoutingKey,
			}
			got, err := o.Parse(payload)
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("message of %s (-want +got):\n%s", payload, diff)
			}
		}
	}
}

func TestNoEnvelope(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":            ``,
		"no object":          `[]`,
		"null":               `null`,
		"no body":            `{"headers": {}}`,
		"no text in body":    `{"body": {"a": 1}}`,
		"no base64":          `{"body": "!", "properties": {"body_encoding": "base64"}}`,
		"cut short":          kombuTask[:len(kombuTask)/2],
		"cut in the body":    kombuTask[:20],
		"more behind it":     `{"body": "x"} {}`,
		"comma too many":     `{"body": "x",}`,
		"no colon":           `{"body" "x"}`,
		"nested for ever":    `{"body": "x", "headers": ` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`,
		"headers are a text": `{"body": "x", "headers": "compression"}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e, err := celery.ParseEnvelope([]byte(text)); err == nil {
				t.Errorf("parse = %+v, want an error", e)
			}
		})
	}
}

func TestAppendEnvelope(t *testing.T) {
	t.Parallel()
	e := celery.Envelope{
		Publishing: broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: "1", ReplyTo: "r", Expiration: "5",
			Priority: 12, Persistent: true, Headers: map[string]any{"id": "1", "eta": nil}, Body: []byte("[]"),
		},
		Exchange: "e", RoutingKey: "k", DeliveryTag: "t",
	}
	got, err := e.Append([]byte("> "))
	want := `> {"body":"W10=","content-encoding":"utf-8","content-type":"application/json","headers":{"eta":null,"id":"1"},` +
		`"properties":{"correlation_id":"1","reply_to":"r","delivery_mode":2,"expiration":"5",` +
		`"delivery_info":{"exchange":"e","routing_key":"k"},"priority":9,"body_encoding":"base64","delivery_tag":"t"}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("envelope, error %v (-want +got):\n%s", err, diff)
	}
	for name, bad := range map[string]celery.Envelope{
		"no tag":            {},
		"header of no JSON": {DeliveryTag: "t", Publishing: broker.Publishing{Headers: map[string]any{"a": func() {}}}},
	} {
		if got, err := bad.Append(nil); err == nil {
			t.Errorf("append an envelope with %s = %s, want an error", name, got)
		}
	}
}

func TestDecompress(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z, err := zlib.NewWriterLevel(&bomb, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write(make([]byte, 65<<20))
	_ = z.Close()
	bz2, err := base64.StdEncoding.DecodeString("QlpoOTFBWSZTWUqVDWQAAAEBgAQABAAgACGYGYQYXckU4UJBKlQ1kA==")
	if err != nil {
		t.Fatal(err)
	}
	message := func(name any, body []byte) broker.Publishing {
		return broker.Publishing{Body: body, Headers: map[string]any{"compression": name, "id": "1"}}
	}
	for name, test := range map[string]struct {
		in   broker.Publishing
		want string // of the error
	}{
		"bomb":               {message("application/x-gzip", bomb.Bytes()), "64 MiB"},
		"gzip, which is not": {message("application/x-gzip", []byte{0x1f, 0x8b, 8, 0}), "decompress body"},
		"cut short":          {message("application/x-gzip", bomb.Bytes()[:100]), "decompress body"},
		"unknown":            {message("application/zstd", nil), `"application/zstd"`},
		"no name":            {message(int64(7), nil), "not a compression"},
		"bad bzip2":          {message("application/x-bz2", bz2[:20]), "decompress body"},
	} {
		if _, err := celery.Decompress(test.in); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	for name, in := range map[string]broker.Publishing{
		"none": {Body: []byte("x")}, "null": message(nil, []byte("x")), "empty": message("", []byte("x")),
	} {
		if got, err := celery.Decompress(in); err != nil || string(got.Body) != "x" {
			t.Errorf("%s: body %q, error %v, want it as it was", name, got.Body, err)
		}
	}
}

func TestParseUnacked(t *testing.T) {
	t.Parallel()
	got, ok := celery.ParseUnacked(`[` + kombuTask + `, "tasks", "mail.send"]`)
	if want := (celery.Unacked{Envelope: kombuTask, Exchange: "tasks", RoutingKey: "mail.send"}); !ok || got != want {
		t.Errorf("unacked = %+v, want %+v", got, want)
	}
	for _, text := range []string{"", "{}", "[", "[]", "[{}]", `[{}, "a"]`, `[{}, "a", "b"`, `[{}, "a", "b"] x`, `[{} "a", "b"]`} {
		if got, ok := celery.ParseUnacked(text); ok {
			t.Errorf("unacked %s = %+v, want nothing", text, got)
		}
	}
}

// FuzzEnvelope reads what anybody may write into Redis. What can be read can be written, and read again.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{kombuTask, kombuEvent, `{"body": "x"}`, `{"body":"","headers":{"a":[{}]},"properties":{"priority":1e9}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := celery.ParseEnvelope(text)
		var o celery.EnvelopeParser
		_, _ = o.Parse([]byte(kombuEvent))
		_, _ = o.Parse(text)
		m, eventErr := o.Parse(text)
		if err != nil {
			return
		}
		if _, compressed := e.Headers["compression"]; !compressed && (eventErr != nil || !bytes.Equal(m.Body, e.Body)) {
			t.Errorf("event body %q, error %v, want %q", m.Body, eventErr, e.Body)
		}
		if e.DeliveryTag == "" {
			return
		}
		again, err := e.Append(nil)
		if err != nil {
			t.Fatalf("append %+v: %v", e, err)
		}
		if got, err := celery.ParseEnvelope(again); err != nil || !bytes.Equal(got.Body, e.Body) || got.Priority != e.Priority {
			t.Errorf("read again = %+v, error %v, want %+v", got, err, e)
		}
	})
}
