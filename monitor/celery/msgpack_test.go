package celery_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

func TestMessagePackIsReadAsJSON(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"small integers":   {"93 00 7f e0", `[0,127,-32]`},
		"unsigned":         {"94 cc ff cd ffff ce ffffffff cf ffffffffffffffff", `[255,65535,4294967295,18446744073709551615]`},
		"signed":           {"94 d0 80 d1 8000 d2 80000000 d3 8000000000000000", `[-128,-32768,-2147483648,-9223372036854775808]`},
		"floats":           {"94 cb 4000000000000000 ca 3f800000 cb 3fb999999999999a cb 4415af1d78b58c40", `[2.0,1.0,0.1,1e+20]`},
		"no numbers":       {"93 cb 7ff8000000000000 cb 7ff0000000000000 cb fff0000000000000", `[NaN,Infinity,-Infinity]`},
		"words":            {"93 c0 c2 c3", `[null,false,true]`},
		"texts":            {"94 a0 a3 61225c d9 02 c3bc da 0001 0a", `["","a\"\\","ü","\u000a"]`},
		"bytes":            {"92 c4 02 00ff c5 0001 41", `["AP8=","QQ=="]`},
		"not UTF-8":        {"a2 ff41", `"` + "\ufffd" + `A"`},
		"extensions":       {"93 d6 ff 00000000 c7 01 05 00 d4 01 02", `[null,null,null]`},
		"maps":             {"82 a1 61 01 05 80", `{"a":1,"5":{}}`},
		"longer lengths":   {"dc 0001 de 0001 db 00000001 6b dd 00000000", `[{"k":[]}]`},
		"map as key":       {"81 81 a1 61 c0 c0", ""},
		"nothing":          {"", ""},
		"more than one":    {"00 00", ""},
		"reserved":         {"c1", ""},
		"cut text":         {"a5 61", ""},
		"cut number":       {"cd 01", ""},
		"huge array":       {"dd ffffffff 00", ""},
		"huge text":        {"db ffffffff 61", ""},
		"huge extension":   {"c9 ffffffff 01", ""},
		"nested too deep":  {strings.Repeat("91", 65) + "c0", ""},
		"nested just less": {strings.Repeat("91", 64) + "c0", strings.Repeat("[", 64) + "null" + strings.Repeat("]", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, err := hex.DecodeString(strings.ReplaceAll(tc.in, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			var d celery.Decoder
			got, ok := d.JSON("application/x-msgpack", in)
			if string(got) != tc.want || ok != (tc.want != "") {
				t.Errorf("got %s (%v), want %s", got, ok, tc.want)
			}
			if n := d.Rejected()[celery.CauseMalformed]; ok == (n == 1) {
				t.Errorf("counted %d malformed messages", n)
			}
		})
	}
}

// TestMessagePackOfPython has the serializer that workers use write events.
func TestMessagePackOfPython(t *testing.T) {
	t.Parallel()
	const body = `[{"type": "task-received", "hostname": "w1@vm", "pid": 16724, "clock": 25, "uuid": "82ed66ec", "name": "wapp.add",
		"args": "('ü\n',)", "retries": 0, "eta": null, "timestamp": 1795222153.963517, "utcoffset": -1.0},
		{"type": "worker-heartbeat", "hostname": "w1@vm", "freq": 2.0, "loadavg": [0.71, 0.65, 0.3], "timestamp": 1795222153, "odd": {"k": [1, true]}}]`
	python := exec.CommandContext(t.Context(), testenv.Python(t), "-c", `
import json, sys
from kombu.serialization import dumps
sys.stdout.buffer.write(dumps(json.load(sys.stdin, strict=False), "msgpack")[2])`)
	python.Stdin = strings.NewReader(body)
	packed, err := python.Output()
	if err != nil {
		t.Fatalf("pack events: %v", err)
	}
	var d celery.Decoder
	read := func(body []byte) (events []state.Event) {
		d.Decode(body, received, func(e *state.Event) {
			keep := *e
			events = append(events, keep)
		})
		return events
	}
	plain, ok := d.JSON("application/x-msgpack", packed)
	if !ok {
		t.Fatalf("not read: %v", d.Rejected())
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(strings.ReplaceAll(body, "ü\n", `ü\n`))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read(compact.Bytes()), read(plain)); diff != "" {
		t.Errorf("events (-of JSON +of MessagePack):\n%s", diff)
	}
}

func FuzzMessagePack(f *testing.F) {
	for _, seed := range []string{"93007fe0", "81a161cb4000000000000000", "dc0001de0001db000000016bdd00000000", "c70105", "c1", "8181818181303030303030", "81dc000100"} {
		b, err := hex.DecodeString(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var d celery.Decoder
		body, ok := d.JSON("application/x-msgpack", b)
		if !ok {
			return
		}
		if len(body) > 6*len(b)+20 {
			t.Errorf("%d bytes became %d", len(b), len(body))
		}
		d.Decode(body, received, func(*state.Event) {})
		if n := d.Rejected()[celery.CauseMalformed]; n > 0 {
			t.Errorf("%x became malformed JSON: %s", b, body)
		}
	})
}
