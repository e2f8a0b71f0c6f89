package celery_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	to := &broker.ReplyTo{Exchange: "reply.celery.pidbox", RoutingKey: "oid"}
	for name, test := range map[string]struct {
		request celery.Request
		want    string
	}{
		"bare": {
			celery.Request{Method: "heartbeat"},
			`{"method":"heartbeat","arguments":{},"destination":null,"pattern":null,"matcher":null}`,
		},
		"no destination is no empty list": {
			celery.Request{Method: "ping", Destination: []string{}, Arguments: map[string]any{}},
			`{"method":"ping","arguments":{},"destination":null,"pattern":null,"matcher":null}`,
		},
		"everything": {
			celery.Request{
				Method: "pool_grow", Arguments: map[string]any{"n": 2}, Destination: []string{"celery@w1"},
				Ticket: "t", ReplyTo: to,
			},
			`{"method":"pool_grow","arguments":{"n":2},"destination":["celery@w1"],"pattern":null,"matcher":null,` +
				`"ticket":"t","reply_to":{"exchange":"reply.celery.pidbox","routing_key":"oid"}}`,
		},
		"null argument": {
			celery.Request{Method: "time_limit", Arguments: map[string]any{"task_name": "a", "hard": nil}},
			`{"method":"time_limit","arguments":{"hard":null,"task_name":"a"},"destination":null,"pattern":null,"matcher":null}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.request.Publishing()
			if err != nil {
				t.Fatalf("publishing: %v", err)
			}
			want := broker.Publishing{
				ContentType: "application/json", ContentEncoding: "utf-8",
				Headers: map[string]any{"clock": int64(0), "expires": int64(0)}, Body: []byte(test.want),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("publishing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestWithoutJSON(t *testing.T) {
	t.Parallel()
	for name, argument := range map[string]any{"NaN": math.NaN(), "channel": make(chan int)} {
		_, err := celery.Request{Method: "pool_grow", Arguments: map[string]any{"n": argument}}.Publishing()
		if err == nil || !strings.HasPrefix(err.Error(), "encode command pool_grow: ") {
			t.Errorf("%s as an argument: error %v, want one that names the command", name, err)
		}
	}
}

// reply is a message with a ticket.
func reply(body string) broker.Publishing {
	return broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8",
		Headers: map[string]any{"ticket": "t", "clock": int64(5)}, Body: []byte(body),
	}
}

// typed is a reply of another content type.
func typed(mime, body string) broker.Publishing {
	m := reply(body)
	m.ContentType = mime
	return m
}

func TestParseReply(t *testing.T) {
	t.Parallel()
	const pickled = "\x80\x02}q\x00X\x05\x00\x00\x00w3@vmq\x01}q\x02X\x02\x00\x00\x00okq\x03X\x04\x00\x00\x00pongq\x04ss."
	for name, test := range map[string]struct {
		message broker.Publishing
		want    celery.Reply
	}{
		"ping":    {reply(`{"w1@vm":{"ok":"pong"}}`), celery.Reply{Node: "w1@vm", Value: json.RawMessage(`{"ok":"pong"}`)}},
		"null":    {reply(`{"w1@vm": null}`), celery.Reply{Node: "w1@vm", Value: json.RawMessage(`null`)}},
		"NaN":     {reply(`{"w":[NaN,-Infinity,Infinity,-1]}`), celery.Reply{Node: "w", Value: json.RawMessage(`[null,null,null,-1]`)}},
		"no type": {typed("", `{"w":1}`), celery.Reply{Node: "w", Value: json.RawMessage(`1`)}},
		"parameters": {
			typed("Application/JSON; charset=utf-8", `{"w":1}`), celery.Reply{Node: "w", Value: json.RawMessage(`1`)},
		},
		"surrogates": {
			reply(`{"w":"\ud83d\ude00 \ud800 \ude00\\ud800 NaN"}`),
			celery.Reply{Node: "w", Value: json.RawMessage("\"\U0001F600 \ufffd \ufffd" + `\\ud800 NaN"`)},
		},
		"raw bytes": {reply("{\"w\":\"a\nb\xff\"}"), celery.Reply{Node: "w", Value: json.RawMessage(`"a\u000ab�"`)}},
		"big integer": {
			reply(`{"w":123456789012345678901234567890}`),
			celery.Reply{Node: "w", Value: json.RawMessage(`123456789012345678901234567890`)},
		},
		"pickle": {typed("application/x-python-serialize", pickled), celery.Reply{
			Node:        "w3@vm",
			Undecodable: "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json",
		}},
		"pickle of an object": {typed("application/x-python-serialize", "cos\nsystem\n."), celery.Reply{
			Undecodable: "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json",
		}},
		"msgpack": {typed("application/x-msgpack", "\x81\xa1w\x01"), celery.Reply{
			Node: "w", Value: json.RawMessage(`1`),
		}},
		"yaml": {typed("application/x-yaml", "w: {ok: pong}\n"), celery.Reply{Node: "w", Value: json.RawMessage(`{"ok":"pong"}`)}},
		"absurd type": {typed(strings.Repeat("x", 5000), `{"w":1}`), celery.Reply{
			Undecodable: "reply is not JSON, MessagePack or YAML (" + strings.Repeat("x", 64) + "…): set task_serializer to json",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := celery.ParseReply(test.message)
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			test.want.Ticket, test.want.Clock = "t", 5
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReplyRefuses(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "pong", "no object": `["w1"]`, "text": `"w1"`, "nobody": `{}`, "two": `{"a":1,"b":2}`,
		"no name": `{"":1}`, "long name": `{"` + strings.Repeat("w", 600) + `":1}`, "cut short": `{"w":{"ok":"po`,
		"half an escape": `{"w":"\`, "deep": `{"w":` + strings.Repeat("[", 200_000), "two values": `{"w":1}{"w":2}`,
		"word": `{"w":NaNs}`, "number": `{"w":-}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := celery.ParseReply(reply(body))
			if err == nil {
				t.Fatalf("reply %q is taken for %+v", body, got)
			}
			if got.Ticket != "t" {
				t.Errorf("ticket = %q, want it beside the error", got.Ticket)
			}
		})
	}
	for name, headers := range map[string]map[string]any{
		"no headers": nil, "no ticket": {"clock": int64(1)}, "ticket is a number": {"ticket": int64(1)}, "empty ticket": {"ticket": ""},
	} {
		m := reply(`{"w":1}`)
		m.Headers = headers
		if got, err := celery.ParseReply(m); err == nil {
			t.Errorf("%s: taken for %+v", name, got)
		}
	}
}

func TestParseReplyReadsClocksOfBothBrokers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header any
		want   int64
	}{
		"AMQP": {int64(7), 7}, "Redis": {float64(7), 7}, "none": {nil, 0}, "text": {"7", 0}, "negative": {int64(-7), 0},
		"absurd": {1e300, 0}, "NaN": {math.NaN(), 0},
	} {
		m := reply(`{"w":1}`)
		m.Headers["clock"] = test.header
		if got, err := celery.ParseReply(m); err != nil || got.Clock != test.want {
			t.Errorf("clock of %s = %d (error %v), want %d", name, got.Clock, err, test.want)
		}
	}
}

// FuzzReply holds ParseReply against encoding/json: whatever both take they read alike, and what it returns is strict
// JSON.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		`{"w":{"ok":"pong"}}`, `{"w":NaN}`, `{"w":"\ud800\udc00\ud800"}`, `{"w":[-Infinity]}`, "{\"\xff\":1}", `{}`, `{"w":"\`, "{\"w\":\"\n\"}",
		"\x80\x02}q\x00X\x05\x00\x00\x00w3@vmq\x01Ns.",
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, plain bool) {
		mime := "application/json"
		if !plain {
			mime = "application/x-python-serialize"
		}
		got, err := celery.ParseReply(typed(mime, string(body)))
		if !plain {
			if err != nil || got.Undecodable == "" || got.Value != nil {
				t.Fatalf("%q as a pickle: %+v, error %v", body, got, err)
			}
			return
		}
		if err == nil && (!json.Valid(got.Value) || !utf8.Valid(got.Value)) {
			t.Fatalf("%q: value %q is no strict JSON", body, got.Value)
		}
		var nodes map[string]any
		if json.Unmarshal(body, &nodes) != nil || len(nodes) != 1 {
			return
		}
		for node, want := range nodes {
			if node == "" || len(node) > 512 {
				return
			}
			var value any
			if err != nil || got.Node != node || json.Unmarshal(got.Value, &value) != nil || !cmp.Equal(value, want) {
				t.Fatalf("%q: read as %+v (error %v), want %v of %q", body, got, err, want, node)
			}
		}
	})
}
