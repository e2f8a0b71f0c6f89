package results_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
)

// A group is saved as its id, the id of what came before it, and its members; one of these may be a group.
func TestParseGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		record string
		want   []string
	}{
		"saved":       {`{"result": [["g", null], [[["a", null], null], [["b", "a"], null]]]}`, []string{"a", "b"}},
		"of groups":   {`{"result": [["g", null], [[["h", null], [[["a", null], null]]], [["b", null], null]]]}`, []string{"h", "a", "b"}},
		"another one": {`{"result": [["x", null], [[["a", null], null]]]}`, nil},
		"odd":         {`{"result": 5}`, nil},
	} {
		got, err := results.ParseGroup("g", []byte(test.record))
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if got, err := results.ParseGroup("g", []byte("\x00")); err == nil {
		t.Errorf("no record: %v", got)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	done := time.Date(2026, 11, 21, 0, 49, 13, 967_415_000, time.UTC)
	tests := map[string]struct {
		record string
		want   results.Result
	}{
		"succeeded": {
			`{"status":"SUCCESS","result":5,"traceback":null,"children":[],"date_done":"2026-11-21T00:49:13.967415+00:00","task_id":"a"}`,
			results.Result{Status: "SUCCESS", Value: json.RawMessage("5"), DoneAt: done},
		},
		"failed": {
			`{"status":"FAILURE","result":{"exc_type":"KeyError","exc_message":["b'ad"],"exc_module":"builtins"},` +
				`"traceback":"Traceback…","children":[],"parent_id":"p","group_id":"g","task_id":"a"}`,
			results.Result{Status: "FAILURE", Exception: "KeyError: b'ad", Repr: `KeyError("b'ad")`, Traceback: "Traceback…", ParentID: "p", GroupID: "g"},
		},
		"failed with what is no text": {
			`{"status":"FAILURE","result":{"exc_type":"TimeLimitExceeded","exc_message":[1,"x",null],"exc_module":"billiard.exceptions"}}`,
			results.Result{Status: "FAILURE", Exception: "billiard.exceptions.TimeLimitExceeded: 1, x, null", Repr: "TimeLimitExceeded(1, 'x', None)"},
		},
		"exception with one text, as of old": {
			`{"status":"RETRY","result":{"exc_type":"Retry","exc_message":"in 3s"}}`,
			results.Result{Status: "RETRY", Exception: "Retry: in 3s", Repr: "Retry('in 3s')"},
		},
		"a result that looks like an exception": {
			`{"status":"SUCCESS","result":{"exc_type":"KeyError"}}`,
			results.Result{Status: "SUCCESS", Value: json.RawMessage(`{"exc_type":"KeyError"}`)},
		},
		"state of the task's own": {
			`{"status":"PROGRESS","result":{"done":0.5}}`,
			results.Result{Status: "PROGRESS", Value: json.RawMessage(`{"done":0.5}`)},
		},
		"no offset": {
			`{"status":"SUCCESS","result":null,"date_done":"2026-11-21T00:49:13.967415"}`,
			results.Result{Status: "SUCCESS", Value: json.RawMessage("null"), DoneAt: done, NaiveTime: true},
		},
		"children and grandchildren": {
			`{"status":"SUCCESS","result":1,"children":[[["b",null],null],[["g",null],[[["c",null],null],[["d",null],null]]],["e",null]]}`,
			results.Result{Status: "SUCCESS", Value: json.RawMessage("1"), Children: []string{"b", "g", "c", "d", "e"}, Groups: []results.Group{{ID: "g", Members: []string{"c", "d"}}}},
		},
		"extended": {
			`{"status":"SUCCESS","result":1,"name":"t","args":[1,"ü"],"kwargs":{"k":null},"worker":"w1@h","retries":2,"queue":"q"}`,
			results.Result{
				Status: "SUCCESS", Value: json.RawMessage("1"), Name: "t", Args: json.RawMessage(`[1,"ü"]`),
				Kwargs: json.RawMessage(`{"k":null}`), Worker: "w1@h", Queue: "q", Retries: new(int64(2)),
			},
		},
		"pickled": {
			// pickle.dumps({'status': 'SUCCESS', 'result': (1, None), 'traceback': None}, 2)
			string(unhex(t, "80027d7100285806000000737461747573710158070000005355434345535371025806000000726573756c7471034b014e8671045809000000747261636562"+
				"61636b71054e752e")),
			results.Result{Status: "SUCCESS", Value: json.RawMessage("[1,null]")},
		},
		"pickled exception": {
			// {'status': 'FAILURE', 'result': KeyError('k'), 'args': [1]}, in protocol 0
			"\x80\x02}(X\x06\x00\x00\x00statusX\x07\x00\x00\x00FAILUREX\x06\x00\x00\x00resultcexceptions\nKeyError\nX\x01\x00\x00\x00k\x85R" +
				"X\x04\x00\x00\x00args]K\x01au.",
			results.Result{Status: "FAILURE", Exception: "KeyError: k", Repr: "KeyError('k')"},
		},
		"pickled exception that Celery could not pickle": {
			"\x80\x02}(X\x06\x00\x00\x00statusX\x07\x00\x00\x00FAILUREX\x06\x00\x00\x00resultccelery.utils.serialization\nUnpickleableExceptionWrapper\n" +
				"(X\x04\x00\x00\x00shopX\x04\x00\x00\x00BoomX\x01\x00\x00\x00a\x85X\x01\x00\x00\x00btRu.",
			results.Result{Status: "FAILURE", Exception: "shop.Boom: a", Repr: "Boom('a')"},
		},
		"yaml": {
			"children: []\nresult:\n  status: 5\nstatus: SUCCESS\ntask_id: a\n",
			results.Result{Status: "SUCCESS", Undecodable: "stored as yaml, not decoded"},
		},
		"msgpack": {
			"\x83\xa6status\xa7SUCCESS\xa6result\x05\xa9traceback\xc0",
			results.Result{Undecodable: "stored as msgpack, not decoded"},
		},
		"pickled with an object": {
			"\x80\x02cdecimal\nDecimal\nX\x01\x00\x00\x001\x85R.",
			results.Result{Undecodable: "opaque Python object"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := results.Parse("a", []byte(test.record))
			if err != nil {
				t.Fatalf("parse: %v", err)
			}
			test.want.TaskID = "a"
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, record := range []string{"", "5", "[]", "null", `{"status":5}`, `{"result":5}`, `{"status":"SUCCESS"`, "\x80\x04N."} {
		if got, err := results.Parse("a", []byte(record)); err == nil {
			t.Errorf("parse %q: %+v, want an error", record, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"status":"SUCCESS","result":NaN,"children":[[["b",null],null]]}`))
	f.Add([]byte("\x80\x02}X\x06\x00\x00\x00statusX\x01\x00\x00\x00Ss."))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := results.Parse("a", b)
		if err == nil && r.Value != nil && !json.Valid(r.Value) {
			t.Errorf("parse %q: value is no JSON: %q", b, r.Value)
		}
	})
}
