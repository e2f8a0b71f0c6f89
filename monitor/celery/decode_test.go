package celery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

const received = 1795222200_000000

// decode returns copies of the events of one body.
func decode(body string) (events []state.Event, lost int, cause string, rejected map[string]uint64) {
	var d celery.Decoder
	lost, cause = d.Decode([]byte(body), received, func(e *state.Event) { events = append(events, *e) })
	return events, lost, cause, d.Rejected()
}

func TestDecodeTaskReceived(t *testing.T) {
	t.Parallel()
	events, lost, _, _ := decode(`{"hostname":"w1@vm","utcoffset":0,"pid":16724,"clock":25,"uuid":"82ed66ec","name":"wapp.add","args":"(2, 3)",
		"kwargs":"{}","root_id":"82ed66ec","parent_id":null,"retries":0,"eta":null,"expires":null,
		"timestamp":1795222153.963517,"type":"task-received"}`)
	if lost != 0 || len(events) != 1 {
		t.Fatalf("decoded %d events, lost %d, want 1 and 0", len(events), lost)
	}
	nulls := state.FieldParentID | state.FieldETA | state.FieldExpires
	want := state.Event{
		Kind: state.TaskReceived, Subject: "received", Hostname: "w1@vm", PID: 16724, Clock: 25,
		Micros: 1795222153963517, ReceivedMicros: received, ID: "82ed66ec", Name: "wapp.add", Args: "(2, 3)", Kwargs: "{}", RootID: "82ed66ec",
		Present: nulls | state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldRetries |
			state.FieldPID | state.FieldClock | state.FieldTimestamp,
		Null: nulls,
	}
	if diff := cmp.Diff(want, events[0]); diff != "" {
		t.Errorf("task-received (-want +got):\n%s", diff)
	}
}

func TestDecodeHeartbeat(t *testing.T) {
	t.Parallel()
	events, _, _, rejected := decode(`{"hostname":"w1@vm","utcoffset":0,"pid":16724,"clock":23,"freq":2.0,"active":0,"processed":7,"loadavg":[0.71,0.65,0.3],
		"sw_ident":"py-celery","sw_ver":"5.6.3","sw_sys":"Linux","timestamp":1795222153.8545997,"type":"worker-heartbeat","alive":[true]}`)
	e := events[0]
	if e.Kind != state.WorkerHeartbeat || e.Freq != 2 || e.FreqIsInt || e.Processed != 7 || e.Load != [3]float64{0.71, 0.65, 0.3} || e.Version != "5.6.3" {
		t.Errorf("heartbeat decoded as %+v", e)
	}
	if diff := cmp.Diff(map[string]string{"alive": "[true]"}, e.Extra); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
	if len(rejected) != 0 {
		t.Errorf("rejected %v, want nothing", rejected)
	}
	events, _, _, _ = decode(`{"type":"worker-heartbeat","hostname":"w","freq":5,"timestamp":1795222153,"clock":3,"pid":1}`)
	if !events[0].FreqIsInt {
		t.Error("an integer freq is not told from a float")
	}
}

func TestDecodeTheReasonOfARevocation(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]state.Revocation{
		`"terminated": true, "signum": 15, "expired": false`:    {Terminated: true, Signum: 15},
		`"terminated": true, "signum": "-9", "expired": null`:   {Terminated: true, Signum: 9},
		`"terminated": false, "signum": null, "expired": true`:  {Expired: true},
		`"terminated": "yes", "signum": "TERM", "expired": 1`:   {},
		`"expired": true, "expired": null, "terminated": false`: {},
	} {
		events, _, _, _ := decode(task(body))
		if e := events[0]; (state.Revocation{Expired: e.Expired, Terminated: e.Terminated, Signum: e.Signum}) != want {
			t.Errorf("%s: expired %v, terminated %v, signal %d, want %+v", body, e.Expired, e.Terminated, e.Signum, want)
		}
	}
}

// task is a body with fields put in or over a valid event.
func task(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return `{"type":"task-started","hostname":"w","pid":1,"clock":9,"timestamp":1795222153.5,"uuid":"u"` + fields + `}`
}

func TestDecodeHostileInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body     string
		events   int
		rejected map[string]uint64
	}{
		"empty body":               {"", 0, map[string]uint64{celery.CauseMalformed: 1}},
		"empty batch":              {"[]", 0, nil},
		"batch":                    {"[" + task("") + "," + task("") + "]", 2, nil},
		"spaces":                   {" \n[ " + task("") + " ,\t" + task("") + " ] ", 2, nil},
		"bad element between good": {"[" + task("") + `,7,{"a":1},` + task("") + "]", 2, map[string]uint64{celery.CauseNotEvent: 2}},
		"batch cut short":          {"[" + task("") + "," + task("")[:40], 1, map[string]uint64{celery.CauseMalformed: 1}},
		"text after the event":     {task("") + "x", 1, map[string]uint64{celery.CauseMalformed: 1}},
		"two objects":              {task("") + task(""), 1, map[string]uint64{celery.CauseMalformed: 1}},
		"no JSON":                  {"hello", 0, map[string]uint64{celery.CauseMalformed: 1}},
		"pickle":                   {"\x80\x04\x95\x10}", 0, map[string]uint64{celery.CauseMalformed: 1}},
		"number":                   {"12", 0, map[string]uint64{celery.CauseNotEvent: 1}},
		"no type":                  {`{"uuid":"u"}`, 0, map[string]uint64{celery.CauseNotEvent: 1}},
		"type null":                {task(`"type":null`), 0, map[string]uint64{celery.CauseNotEvent: 1}},
		"type is a number":         {`{"type":7}`, 0, map[string]uint64{celery.CauseNotEvent: 1, celery.CauseField: 1}},
		"type without subject":     {task(`"type":"task-"`), 0, map[string]uint64{celery.CauseNotEvent: 1}},
		"keys are case-sensitive":  {task(`"TYPE":"worker-offline","Uuid":"x"`), 1, nil},
		"no hostname":              {`{"type":"task-started","uuid":"u"}`, 0, map[string]uint64{celery.CauseHostname: 1}},
		"no uuid":                  {`{"type":"task-started","hostname":"w"}`, 0, map[string]uint64{celery.CauseUUID: 1}},
		"uuid too long":            {task(`"uuid":"` + strings.Repeat("u", 600) + `"`), 0, map[string]uint64{celery.CauseUUID: 1}},
		"uuid null":                {task(`"uuid":null`), 0, map[string]uint64{celery.CauseUUID: 1}},
		"NaN":                      {task(`"runtime":NaN,"x":[-Infinity,Infinity]`), 1, nil},
		"lone surrogate":           {task(`"args":"\ud800","kwargs":"\ud83d\ude00"`), 1, nil},
		"invalid UTF-8":            {task("\"args\":\"\xff\xfe\""), 1, nil},
		"huge integer":             {task(`"x":123456789012345678901234567890`), 1, nil},
		"clock null":               {task(`"clock":null`), 1, map[string]uint64{celery.CauseClock: 1}},
		"clock zero":               {task(`"clock":0`), 1, map[string]uint64{celery.CauseClock: 1}},
		"clock absurd":             {task(`"clock":9223372036854775807`), 1, map[string]uint64{celery.CauseClock: 1}},
		"clock beyond 64 bits":     {task(`"clock":92233720368547758070`), 1, map[string]uint64{celery.CauseClock: 1}},
		"clock is text":            {task(`"clock":"7"`), 1, map[string]uint64{celery.CauseClock: 1, celery.CauseField: 1}},
		"timestamp missing":        {`{"type":"task-started","hostname":"w","clock":9,"uuid":"u"}`, 1, map[string]uint64{celery.CauseTimestamp: 1}},
		"timestamp of 1970":        {task(`"timestamp":12.5`), 1, map[string]uint64{celery.CauseTimestamp: 1}},
		"timestamp NaN":            {task(`"timestamp":NaN`), 1, map[string]uint64{celery.CauseTimestamp: 1}},
		"timestamp is text":        {task(`"timestamp":"now"`), 1, map[string]uint64{celery.CauseField: 1, celery.CauseTimestamp: 0}},
		"name is a list":           {task(`"name":["x"]`), 1, map[string]uint64{celery.CauseField: 1}},
		"other group":              {`{"type":"foo-bar"}`, 1, nil},
		"deep nesting":             {task(`"x":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)), 1, nil},
		"unbalanced nesting":       {task(`"x":` + strings.Repeat("[", 200_000)), 0, map[string]uint64{celery.CauseMalformed: 1}},
		"bad escape":               {task(`"args":"\x"`), 0, map[string]uint64{celery.CauseMalformed: 1}},
		"string without end":       {`{"type":"task-sta`, 0, map[string]uint64{celery.CauseMalformed: 1}},
		"escape at the very end":   {`{"type":"\`, 0, map[string]uint64{celery.CauseMalformed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, lost, _, rejected := decode(tc.body)
			if len(events) != tc.events {
				t.Errorf("got %d events, want %d", len(events), tc.events)
			}
			for cause, want := range tc.rejected {
				if want > 0 && rejected[cause] != want {
					t.Errorf("rejected[%s] = %d, want %d (all: %v)", cause, rejected[cause], want, rejected)
				}
			}
			if tc.rejected == nil && (lost != 0 || len(rejected) != 0) {
				t.Errorf("lost %d, rejected %v, want nothing", lost, rejected)
			}
		})
	}
}

func TestDecodeKeepsWhatItCannotBelieveButShow(t *testing.T) {
	t.Parallel()
	events, _, _, _ := decode(task(`"args":[1,{"a":2}],"clock":7.9,"timestamp":-1`))
	e := events[0]
	if e.Args != `[1,{"a":2}]` {
		t.Errorf("args that are no string = %q, want their JSON", e.Args)
	}
	if e.Clock != 7 {
		t.Errorf("float clock = %d, want 7", e.Clock)
	}
	if e.Micros != received || !e.Retimed {
		t.Errorf("absurd timestamp = %d (retimed %v), want the time of receipt", e.Micros, e.Retimed)
	}
}

func TestDecodeAnyNumberOfEvents(t *testing.T) {
	t.Parallel()
	const n = 5000
	body := "[" + strings.Repeat(task("")+",", n-1) + task("") + "]"
	if events, lost, cause, _ := decode(body); len(events) != n || lost != 0 {
		t.Errorf("decoded %d of %d events, lost %d (%s)", len(events), n, lost, cause)
	}
}

func TestJSONTellsSerializersByTheirMIMEType(t *testing.T) {
	t.Parallel()
	var d celery.Decoder
	for mime, want := range map[string]bool{
		"application/json": true, "": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"application/x-yaml": true, "application/x-python-serialize": false, "text/plain": false, "application/xml": false,
	} {
		if body, got := d.JSON(mime, []byte("{}")); got != want || want && string(body) != "{}" {
			t.Errorf("JSON(%q) = %s, %v, want %v", mime, body, got, want)
		}
	}
	got, want := d.Rejected(), map[string]uint64{celery.CauseContentType: 2, celery.CausePickle: 1}
	if !maps.Equal(got, want) {
		t.Errorf("rejected %v, want %v", got, want)
	}
}

// FuzzEvent holds Decode against encoding/json: whatever that accepts, Decode reads the same way, and
// nothing makes it panic.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		task(""), task(`"args":"\ud83d\ude00 \u00e4","kwargs":"\\'"`), "[" + task("") + "]", "[]", `{"type":"worker-online","hostname":"w"}`,
		task(`"runtime":NaN`), `{"a":{"b":[1,2,{"c":null}]}}`, "{\"type\":\"task-sent\",\"hostname\":\"\xff\"}", task(`"clock":1e3`),
		task(`"uuid":"a","uuid":"b"`), `[1,`, `{"type"`, task(`"x":{"y":"}"}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got []state.Event
		var d celery.Decoder
		lost, _ := d.Decode(body, received, func(e *state.Event) { got = append(got, *e) })
		var v any
		if json.Unmarshal(body, &v) != nil {
			return
		}
		elements, batch := v.([]any)
		if !batch {
			elements = []any{v}
		}
		if len(got)+lost != len(elements) {
			t.Fatalf("%q: %d events and %d lost of %d elements", body, len(got), lost, len(elements))
		}
		i := 0
		for _, el := range elements {
			if i < len(got) && matches(el, &got[i]) {
				i++
			}
		}
		if i != len(got) {
			t.Fatalf("%q: event %d differs from encoding/json's reading: %+v", body, i, got[i])
		}
	})
}

// matches reports whether e holds the strings of the object as encoding/json reads them.
func matches(object any, e *state.Event) bool {
	m, ok := object.(map[string]any)
	if !ok {
		return false
	}
	for key, got := range map[string]string{
		"hostname": e.Hostname, "uuid": e.ID, "name": e.Name, "root_id": e.RootID, "queue": e.Queue, "sw_ver": e.Version,
	} {
		if want, ok := m[key].(string); ok && want != got {
			return false
		}
	}
	typ, ok := m["type"].(string)
	return ok && (e.Kind == state.Other || strings.HasSuffix(typ, e.Subject))
}

func ExampleDecoder() {
	var d celery.Decoder
	d.Decode([]byte(`[{"type":"task-started","hostname":"w1@vm","pid":7,"clock":3,"timestamp":1795222153.5,"uuid":"82ed66ec"}]`), 0,
		func(e *state.Event) { fmt.Println(e.Hostname, e.Clock, e.ID) })
	// Output: w1@vm 3 82ed66ec
}
