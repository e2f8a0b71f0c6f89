package remote_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/remote"
)

func TestMethods(t *testing.T) {
	t.Parallel()
	var inspect, act []string
	for _, m := range remote.Methods() {
		if m.Inspect {
			inspect = append(inspect, m.Name)
			if len(act) > 0 {
				t.Errorf("%s inspects and comes after %s, which does not", m.Name, act[0])
			}
		} else {
			act = append(act, m.Name)
		}
		if m.Title == "" || !strings.HasSuffix(m.Doc, ".") {
			t.Errorf("%s has title %q and doc %q", m.Name, m.Title, m.Doc)
		}
		for _, p := range m.Params {
			if !strings.HasSuffix(p.Doc, ".") {
				t.Errorf("argument %s of %s has doc %q", p.Name, m.Name, p.Doc)
			}
		}
		if got, ok := remote.Lookup(m.Name); !ok || got.Name != m.Name {
			t.Errorf("lookup of %s = %s, %v", m.Name, got.Name, ok)
		}
		if remote.Refused(m.Name) != "" {
			t.Errorf("%s is offered and refused", m.Name)
		}
	}
	if diff := cmp.Diff([]string{
		"ping", "stats", "active", "reserved", "scheduled", "revoked", "registered", "active_queues", "conf", "report",
		"query_task", "clock", "memsample",
	}, inspect); diff != "" {
		t.Errorf("inspecting methods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"revoke", "terminate", "revoke_by_stamped_headers", "rate_limit", "time_limit", "enable_events", "disable_events",
		"heartbeat", "pool_grow", "pool_shrink", "pool_restart", "autoscale", "add_consumer", "cancel_consumer", "drain", "undrain", "shutdown",
	}, act); diff != "" {
		t.Errorf("acting methods (-want +got):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"election", "hello", "objgraph", "memdump"} {
		if _, ok := remote.Lookup(name); ok {
			t.Errorf("%s is offered", name)
		}
		if remote.Refused(name) == "" {
			t.Errorf("nothing says why %s is refused", name)
		}
	}
	for alias, want := range map[string]string{
		"dump_active": "active", "dump_reserved": "reserved", "dump_schedule": "scheduled", "dump_revoked": "revoked",
		"dump_tasks": "registered", "dump_conf": "conf",
	} {
		if got, _ := remote.Lookup(alias); got.Name != want {
			t.Errorf("lookup of %s = %q, want %q", alias, got.Name, want)
		}
	}
	for name, want := range map[string]string{"pool_grw": "pool_grow", "shutdwon": "shutdown", "": "", "xyzzy": ""} {
		if _, ok := remote.Lookup(name); ok {
			t.Errorf("%q is a method", name)
		}
		if got := remote.Nearest(name); got != want {
			t.Errorf("nearest to %q = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]struct{ danger, silent bool }{
		"shutdown": {true, true}, "terminate": {true, false}, "revoke": {true, false}, "revoke_by_stamped_headers": {true, false},
		"pool_restart": {true, false}, "cancel_consumer": {true, false}, "ping": {}, "pool_grow": {}, "rate_limit": {}, "heartbeat": {},
	} {
		if m, _ := remote.Lookup(name); m.Dangerous != want.danger || m.NoReply != want.silent {
			t.Errorf("%s: danger %v, silent %v, want %v and %v", name, m.Dangerous, m.NoReply, want.danger, want.silent)
		}
	}
}

// object is an argument list as JSON has it.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var args map[string]any
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return args
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ method, args, want string }{
		{"ping", `null`, `{}`},
		{"ping", `{}`, `{}`},
		{"active", `{"safe":true}`, `{"safe":true}`},
		{"registered", `{"taskinfoitems":["rate_limit"],"builtins":false}`, `{"builtins":false,"taskinfoitems":["rate_limit"]}`},
		{"conf", `{"with_defaults":true}`, `{"with_defaults":true}`},
		{"query_task", `{"ids":"a"}`, `{"ids":["a"]}`},
		{"query_task", `{"ids":["a","b"]}`, `{"ids":["a","b"]}`},
		{"revoke", `{"task_id":"a"}`, `{"task_id":["a"]}`},
		{"revoke", `{"task_id":["a"],"terminate":true,"signal":"SIGKILL"}`, `{"signal":"SIGKILL","task_id":["a"],"terminate":true}`},
		{"terminate", `{"task_id":["a"]}`, `{"signal":"SIGTERM","task_id":["a"]}`},
		{"revoke_by_stamped_headers", `{"headers":{"k":"v","l":["a",2]}}`, `{"headers":{"k":"v","l":["a",2]}}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"10/m"}`, `{"rate_limit":"10/m","task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"0.5/s"}`, `{"rate_limit":"0.5/s","task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"100"}`, `{"rate_limit":"100","task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":0}`, `{"rate_limit":0,"task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"0"}`, `{"rate_limit":0,"task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"0/m"}`, `{"rate_limit":0,"task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":"0.0"}`, `{"rate_limit":0,"task_name":"a"}`},
		{"rate_limit", `{"task_name":"a","rate_limit":2.5}`, `{"rate_limit":2.5,"task_name":"a"}`},
		{"time_limit", `{"task_name":"a","soft":10}`, `{"soft":10,"task_name":"a"}`},
		{"time_limit", `{"task_name":"a","soft":10,"hard":10.5}`, `{"hard":10.5,"soft":10,"task_name":"a"}`},
		{"time_limit", `{"task_name":"a","hard":null}`, `{"hard":null,"task_name":"a"}`},
		{"time_limit", `{"task_name":"a","soft":10,"hard":null}`, `{"hard":null,"soft":10,"task_name":"a"}`},
		{"pool_grow", `{}`, `{}`},
		{"pool_grow", `{"n":2}`, `{"n":2}`},
		{"pool_shrink", `{"n":2.0}`, `{"n":2}`},
		{"pool_restart", `{"modules":["tasks"]}`, `{"modules":["tasks"]}`},
		{"autoscale", `{"max":3,"min":3}`, `{"max":3,"min":3}`},
		{"autoscale", `{"max":3,"min":0}`, `{"max":3,"min":0}`},
		{"add_consumer", `{"queue":"q"}`, `{"queue":"q"}`},
		{"add_consumer", `{"queue":"q","exchange":"e","exchange_type":"topic","routing_key":"a.#"}`, `{"exchange":"e","exchange_type":"topic","queue":"q","routing_key":"a.#"}`},
		{"cancel_consumer", `{"queue":"q"}`, `{"queue":"q"}`},
		{"shutdown", `{}`, `{}`},
	} {
		t.Run(test.method+test.args, func(t *testing.T) {
			t.Parallel()
			m, _ := remote.Lookup(test.method)
			got, err := m.Check(object(t, test.args))
			if err != nil {
				t.Fatalf("check: %v", err)
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if string(text) != test.want {
				t.Errorf("arguments = %s, want %s", text, test.want)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 2000) + `"`
	for _, test := range []struct{ method, args, argument, nearest string }{
		{"ping", `{"x":1}`, "x", ""},
		{"report", `{"x":1}`, "x", ""},
		{"active", `{"sfae":true}`, "sfae", "safe"},
		{"active", `{"safe":"true"}`, "safe", ""},
		{"active", `{"safe":1}`, "safe", ""},
		{"active", `{"safe":null}`, "safe", ""},
		{"query_task", `{}`, "ids", ""},
		{"query_task", `{"ids":[]}`, "ids", ""},
		{"query_task", `{"ids":[1]}`, "ids", ""},
		{"query_task", `{"ids":[""]}`, "ids", ""},
		{"revoke", `{"id":"a"}`, "id", ""},
		{"revoke", `{}`, "task_id", ""},
		{"revoke", `{"task_id":null}`, "task_id", ""},
		{"revoke", `{"task_id":"a","signal":"SIGBOGUS"}`, "signal", ""},
		{"revoke", `{"task_id":"a","signal":"sigterm"}`, "signal", "SIGTERM"},
		{"revoke", `{"task_id":"a","signal":"KILL"}`, "signal", "SIGKILL"},
		{"revoke", `{"task_id":"a","signal":9}`, "signal", ""},
		{"terminate", `{"signal":"SIGTERM"}`, "task_id", ""},
		{"revoke_by_stamped_headers", `{}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":["k=v"]}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":{}}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":{"":1}}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":{"k":null}}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":{"k":[]}}`, "headers", ""},
		{"revoke_by_stamped_headers", `{"headers":{"k":{"a":1}}}`, "headers", ""},
		{"rate_limit", `{"task_name":"a"}`, "rate_limit", ""},
		{"rate_limit", `{"rate_limit":"1/s"}`, "task_name", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":null}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":""}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":"10/d"}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":"nan"}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":"1e3"}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":"-1/s"}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":-1}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":"a","rate_limit":true}`, "rate_limit", ""},
		{"rate_limit", `{"task_name":7,"rate_limit":1}`, "task_name", ""},
		{"time_limit", `{"task_name":"a"}`, "soft", ""},
		{"time_limit", `{"soft":1}`, "task_name", ""},
		{"time_limit", `{"task_name":"a","soft":"10"}`, "soft", ""},
		{"time_limit", `{"task_name":"a","soft":0}`, "soft", ""},
		{"time_limit", `{"task_name":"a","hard":-1}`, "hard", ""},
		{"time_limit", `{"task_name":"a","hard":1e99}`, "hard", ""},
		{"time_limit", `{"task_name":"a","soft":11,"hard":10}`, "soft", ""},
		{"time_limit", `{"task_name":"a","hrad":10}`, "hrad", "hard"},
		{"pool_grow", `{"n":"2"}`, "n", ""},
		{"pool_grow", `{"n":0}`, "n", ""},
		{"pool_grow", `{"n":-1}`, "n", ""},
		{"pool_grow", `{"n":1.5}`, "n", ""},
		{"pool_grow", `{"n":100000}`, "n", ""},
		{"pool_grow", `{"n":null}`, "n", ""},
		{"pool_grow", `{"N":1}`, "N", "n"},
		{"pool_shrink", `{"n":true}`, "n", ""},
		{"pool_restart", `{"reload":true}`, "reload", ""},
		{"pool_restart", `{"reloader":"x"}`, "reloader", ""},
		{"autoscale", `{"max":3}`, "min", ""},
		{"autoscale", `{"min":3}`, "max", ""},
		{"autoscale", `{"max":0,"min":0}`, "max", ""},
		{"autoscale", `{"max":2,"min":3}`, "min", ""},
		{"autoscale", `{"max":"3","min":1}`, "max", ""},
		{"add_consumer", `{}`, "queue", ""},
		{"add_consumer", `{"queue":""}`, "queue", ""},
		{"add_consumer", `{"queue":"  "}`, "queue", ""},
		{"add_consumer", `{"queue":["q"]}`, "queue", ""},
		{"add_consumer", `{"queue":` + long + `}`, "queue", ""},
		{"add_consumer", `{"queue":"q","exchange_type":"topik"}`, "exchange_type", "topic"},
		{"add_consumer", `{"queue":"q","routingkey":"x"}`, "routingkey", "routing_key"},
		{"cancel_consumer", `{}`, "queue", ""},
		{"shutdown", `{"msg":"bye"}`, "msg", ""},
	} {
		t.Run(test.method+test.args[:min(len(test.args), 60)], func(t *testing.T) {
			t.Parallel()
			m, _ := remote.Lookup(test.method)
			got, err := m.Check(object(t, test.args))
			wrong, ok := errors.AsType[*remote.ArgumentError](err)
			if !ok {
				t.Fatalf("check = %v, error %v, want an argument error", got, err)
			}
			if wrong.Method != test.method || wrong.Argument != test.argument || wrong.Nearest != test.nearest {
				t.Errorf("error is of %s, %s, nearest %q, want %s, %s, %q", wrong.Method, wrong.Argument, wrong.Nearest, test.method, test.argument, test.nearest)
			}
			if s := err.Error(); !strings.HasPrefix(s, "argument "+test.argument+" of "+test.method+" ") || len(s) > 300 {
				t.Errorf("error = %q", s)
			}
		})
	}
}

func TestCheckRefusesWhatGoHasAndJSONNot(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]any{
		"NaN": math.NaN(), "infinity": math.Inf(1), "channel": make(chan int), "bytes": []byte("1"), "number": json.Number("x"),
	} {
		m, _ := remote.Lookup("pool_grow")
		if got, err := m.Check(map[string]any{"n": n}); err == nil {
			t.Errorf("%s as a number: %v", name, got)
		}
	}
	m, _ := remote.Lookup("cancel_consumer")
	if got, err := m.Check(map[string]any{"queue": "\xff"}); err == nil {
		t.Errorf("text that is not UTF-8: %v", got)
	}
	for name, n := range map[string]any{"int": 2, "int64": int64(2), "float": 2.0, "number": json.Number("2")} {
		grow, _ := remote.Lookup("pool_grow")
		if got, err := grow.Check(map[string]any{"n": n}); err != nil || got["n"] != int64(2) {
			t.Errorf("%s as a number: %v, error %v", name, got, err)
		}
	}
}

// TestWhatCheckPasses holds for any arguments: what passes has every required argument, only known ones, no null but
// for limits, numbers where Celery calculates; it survives JSON, and passes again unchanged.
func TestWhatCheckPasses(t *testing.T) {
	t.Parallel()
	methods := remote.Methods()
	value := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Just[any]("SIGTERM"), rapid.Just[any]("10/m"), rapid.Just[any]("direct"),
		rapid.Map(rapid.IntRange(-2, 5), func(n int) any { return float64(n) }),
		rapid.Map(rapid.Float64(), func(n float64) any { return n }),
		rapid.Map(rapid.StringN(0, 8, -1), func(s string) any { return s }),
		rapid.Map(rapid.SliceOfN(rapid.StringN(0, 3, -1), 0, 3), func(s []string) any {
			list := make([]any, len(s))
			for i := range s {
				list[i] = s[i]
			}
			return list
		}),
		rapid.Just[any](map[string]any{"k": "v"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(methods).Draw(t, "method")
		args := make(map[string]any)
		for _, p := range m.Params {
			if rapid.IntRange(0, 4).Draw(t, "given") > 0 {
				args[p.Name] = value.Draw(t, p.Name)
			}
		}
		got, err := m.Check(args)
		if err != nil {
			if _, ok := errors.AsType[*remote.ArgumentError](err); !ok {
				t.Fatalf("error %v is not of an argument", err)
			}
			return
		}
		for _, p := range m.Params {
			v, given := got[p.Name]
			if !given {
				if p.Required {
					t.Fatalf("%s passed without %s: %v", m.Name, p.Name, got)
				}
				continue
			}
			if why := unfit(p, v); why != "" {
				t.Fatalf("%s passed with %s = %#v: %s", m.Name, p.Name, v, why)
			}
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatalf("%s passed what is no JSON: %v", m.Name, err)
		}
		var back map[string]any
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		again, err := m.Check(back)
		if err != nil || !cmp.Equal(got, again) {
			t.Fatalf("%s passed %v, and %v (error %v) the second time", m.Name, got, again, err)
		}
	})
}

// unfit says why a worker would stumble over a value, or misunderstand it.
func unfit(p remote.Param, v any) string {
	switch p.Type {
	case remote.Text:
		if s, ok := v.(string); !ok || strings.TrimSpace(s) == "" {
			return "no text"
		}
	case remote.Signal:
		if s, ok := v.(string); !ok || !slices.Contains(p.Choices, s) {
			return "no signal"
		}
	case remote.TextList:
		list, ok := v.([]any)
		if !ok || len(list) == 0 || slices.Contains(list, any("")) {
			return "no list of texts"
		}
	case remote.Integer:
		if n, ok := v.(int64); !ok || n < p.Min {
			return "no whole number"
		}
	case remote.Seconds:
		if n, ok := v.(float64); v != nil && (!ok || n <= 0) {
			return "no seconds"
		}
	case remote.Rate:
		if s, ok := v.(string); ok && strings.Trim(s, "0./smh") == "" {
			return "a limit that limits nothing"
		}
	case remote.Flag:
		if _, ok := v.(bool); !ok {
			return "no boolean"
		}
	case remote.AnyJSON:
		if m, ok := v.(map[string]any); !ok || len(m) == 0 {
			return "no object"
		}
	}
	return ""
}

func TestForm(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method string
		values map[string][]string
		want   string // arguments after Check, or the argument that it refuses
	}{
		{"pool_grow", map[string][]string{"n": {" 2 "}, "worker": {"w1"}}, `{"n":2}`},
		{"pool_grow", map[string][]string{"n": {""}}, `{}`},
		{"pool_grow", map[string][]string{"n": {"two"}}, "n"},
		{"revoke", map[string][]string{"task_id": {"a, b\nc"}, "terminate": {"on"}, "signal": {"SIGKILL"}}, `{"signal":"SIGKILL","task_id":["a","b","c"],"terminate":true}`},
		{"revoke", map[string][]string{"task_id": {"a", "b"}}, `{"task_id":["a","b"]}`},
		{"revoke", map[string][]string{"task_id": {" , "}}, "task_id"},
		{"active", map[string][]string{"safe": {"maybe"}}, "safe"},
		{"active", map[string][]string{"safe": {"0"}}, `{"safe":false}`},
		{"rate_limit", map[string][]string{"task_name": {"a"}, "rate_limit": {"0"}}, `{"rate_limit":0,"task_name":"a"}`},
		{"time_limit", map[string][]string{"task_name": {"a"}, "soft": {"1.5"}, "hard": {"null"}}, `{"hard":null,"soft":1.5,"task_name":"a"}`},
		{"cancel_consumer", map[string][]string{"queue": {"123"}}, `{"queue":"123"}`},
		{"revoke_by_stamped_headers", map[string][]string{"headers": {`{"k":["v"]}`}}, `{"headers":{"k":["v"]}}`},
		{"revoke_by_stamped_headers", map[string][]string{"headers": {`k=v`}}, "headers"},
	} {
		m, _ := remote.Lookup(test.method)
		got, err := m.Check(m.ParseForm(test.values))
		if wrong, ok := errors.AsType[*remote.ArgumentError](err); ok {
			if wrong.Argument != test.want {
				t.Errorf("%s with %v: %v, want %s", test.method, test.values, err, test.want)
			}
			continue
		}
		text, _ := json.Marshal(got)
		if string(text) != test.want {
			t.Errorf("%s with %v = %s, want %s", test.method, test.values, text, test.want)
		}
	}
}
