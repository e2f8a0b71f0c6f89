package celery_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

var now = time.Date(2026, 11, 21, 0, 49, 15, 0, time.UTC)

func TestMessageAsCeleryPublishesIt(t *testing.T) {
	t.Parallel()
	m := celery.Message{
		ID: "id-1", Name: "proj.add", Args: json.RawMessage(`[1, "ü"]`), Kwargs: json.RawMessage(`{"a": null}`),
		ParentID: "parent", RootID: "root", GroupID: "group", Shadow: "shown", Origin: "gen1@host", Retries: 2,
		ETA: now.Add(467538 * time.Microsecond).In(time.FixedZone("", 3600)), Expires: now.Add(90 * time.Second),
		HardLimit: new(10.0), SoftLimit: new(2.5), Priority: new(uint8(7)),
		Headers: map[string]any{"mine": "x", "stamped_headers": []any{"s"}, "stamps": map[string]any{"s": "v"}},
	}
	got, err := m.Publishing(now)
	if err != nil {
		t.Fatal(err)
	}
	want := broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", CorrelationID: "id-1", Expiration: "90000",
		Priority: 7, Persistent: true,
		Headers: map[string]any{
			"lang": "py", "task": "proj.add", "id": "id-1", "root_id": "root", "parent_id": "parent", "group": "group",
			"group_index": nil, "shadow": "shown", "eta": "2026-11-21T00:49:15.467538+00:00",
			"expires": "2026-11-21T00:50:45.000000+00:00", "retries": int64(2), "timelimit": []any{int64(10), 2.5},
			"argsrepr": "(1, 'ü')", "kwargsrepr": "{'a': None}", "origin": "gen1@host", "ignore_result": false,
			"replaced_task_nesting": int64(0), "stamped_headers": []any{"s"}, "stamps": map[string]any{"s": "v"}, "mine": "x",
		},
		Body: []byte(`[[1, "ü"], {"a": null}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`),
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}

func TestMessageOfNothingButAName(t *testing.T) {
	t.Parallel()
	got, err := celery.Message{ID: "i", Name: "add"}.Publishing(now)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"root_id": "i", "parent_id": nil, "group": nil, "shadow": nil, "eta": nil, "expires": nil, "argsrepr": "()", "kwargsrepr": "{}",
		"timelimit": []any{nil, nil}, "stamped_headers": nil, "stamps": map[string]any{},
	} {
		if diff := cmp.Diff(got.Headers[name], want); diff != "" {
			t.Errorf("header %s: got - want +\n%s", name, diff)
		}
	}
	if got, want := string(got.Body), `[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`; got != want {
		t.Errorf("body = %s, want %s", got, want)
	}
	if got.Expiration != "" {
		t.Errorf("expiration = %q, want none", got.Expiration)
	}
}

func TestMessageRefusesWhatHarmsWorkers(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	tests := map[string]struct {
		change func(m *celery.Message)
		path   string
	}{
		"no id":               {func(m *celery.Message) { m.ID = "" }, "id"},
		"long id":             {func(m *celery.Message) { m.ID = strings.Repeat("x", 256) }, "id"},
		"control in id":       {func(m *celery.Message) { m.ID = "a\nb" }, "id"},
		"no name":             {func(m *celery.Message) { m.Name = "" }, "name"},
		"name of dots":        {func(m *celery.Message) { m.Name = "a..b" }, "name"},
		"name with a space":   {func(m *celery.Message) { m.Name = " a" }, "name"},
		"name not UTF-8":      {func(m *celery.Message) { m.Name = "a\xff" }, "name"},
		"args no JSON":        {func(m *celery.Message) { m.Args = json.RawMessage(`[1,`) }, "args"},
		"two values":          {func(m *celery.Message) { m.Args = json.RawMessage(`[1] [2]`) }, "args"},
		"args an object":      {func(m *celery.Message) { m.Args = json.RawMessage(`{"a": 1}`) }, "args"},
		"args null":           {func(m *celery.Message) { m.Args = json.RawMessage(`null`) }, "args"},
		"kwargs null":         {func(m *celery.Message) { m.Kwargs = json.RawMessage(`null`) }, "kwargs"},
		"kwargs an array":     {func(m *celery.Message) { m.Kwargs = json.RawMessage(`[]`) }, "kwargs"},
		"NaN":                 {func(m *celery.Message) { m.Args = json.RawMessage(`[NaN]`) }, "args"},
		"infinite":            {func(m *celery.Message) { m.Args = json.RawMessage(`[1, {"price": 1e400}]`) }, "args[1].price"},
		"endless integer":     {func(m *celery.Message) { m.Args = json.RawMessage("[" + strings.Repeat("9", 4301) + "]") }, "args[0]"},
		"duplicate key":       {func(m *celery.Message) { m.Kwargs = json.RawMessage(`{"a": {"b": 1, "b": 2}}`) }, "kwargs.a.b"},
		"same key, escaped":   {func(m *celery.Message) { m.Kwargs = json.RawMessage(`{"a": 1, "\u0061": 2}`) }, "kwargs.a"},
		"half a pair":         {func(m *celery.Message) { m.Args = json.RawMessage(`["\ud83d"]`) }, "args[0]"},
		"half a pair in key":  {func(m *celery.Message) { m.Kwargs = json.RawMessage(`{"\udc00": 1}`) }, "kwargs"},
		"not UTF-8":           {func(m *celery.Message) { m.Args = json.RawMessage("[\"\xff\"]") }, "args"},
		"too deep":            {func(m *celery.Message) { m.Args = json.RawMessage(deep) }, "args" + strings.Repeat("[0]", 65)},
		"too long":            {func(m *celery.Message) { m.Args = json.RawMessage(`["` + strings.Repeat("x", 512<<10) + `"]`) }, "args"},
		"unknown wrapper":     {func(m *celery.Message) { m.Args = json.RawMessage(`[{"__type__": "set", "__value__": []}]`) }, "args[0].__type__"},
		"wrapper of no type":  {func(m *celery.Message) { m.Args = json.RawMessage(`[{"__type__": [], "__value__": 1}]`) }, "args[0].__type__"},
		"no datetime":         {func(m *celery.Message) { m.Args = json.RawMessage(`[{"__type__": "datetime", "__value__": "now"}]`) }, "args[0].__value__"},
		"kwargs are wrapped":  {func(m *celery.Message) { m.Kwargs = json.RawMessage(`{"__type__": "bytes", "__value__": "a"}`) }, "kwargs"},
		"priority":            {func(m *celery.Message) { m.Priority = new(uint8(10)) }, "priority"},
		"retries":             {func(m *celery.Message) { m.Retries = -1 }, "retries"},
		"expired":             {func(m *celery.Message) { m.Expires = now }, "expires"},
		"expires before eta":  {func(m *celery.Message) { m.ETA, m.Expires = now.Add(2*time.Hour), now.Add(time.Hour) }, "expires"},
		"eta of doom":         {func(m *celery.Message) { m.ETA = now.AddDate(11, 0, 0) }, "eta"},
		"eta before all":      {func(m *celery.Message) { m.ETA = time.Unix(-1e9, 0) }, "eta"},
		"no time":             {func(m *celery.Message) { m.HardLimit = new(0.0) }, "hard"},
		"no number of time":   {func(m *celery.Message) { m.SoftLimit = new(math.NaN()) }, "soft"},
		"soft above hard":     {func(m *celery.Message) { m.HardLimit, m.SoftLimit = new(1.0), new(2.0) }, "soft"},
		"header task":         {func(m *celery.Message) { m.Headers = map[string]any{"task": "x"} }, "headers.task"},
		"header compression":  {func(m *celery.Message) { m.Headers = map[string]any{"compression": "gzip"} }, "headers.compression"},
		"header of bytes":     {func(m *celery.Message) { m.Headers = map[string]any{"a": []byte("x")} }, "headers.a"},
		"nested NaN":          {func(m *celery.Message) { m.Headers = map[string]any{"a": []any{math.NaN()}} }, "headers.a[0]"},
		"stamps of text":      {func(m *celery.Message) { m.Headers = map[string]any{"stamps": "x"} }, "headers.stamps"},
		"stamped by a number": {func(m *celery.Message) { m.Headers = map[string]any{"stamped_headers": []any{int64(1)}} }, "headers.stamped_headers"},
		"embed an array":      {func(m *celery.Message) { m.Embed = json.RawMessage(`[]`) }, "embed"},
		"embed of args":       {func(m *celery.Message) { m.Embed = json.RawMessage(`{"args": null}`) }, "embed.args"},
		"chain of numbers":    {func(m *celery.Message) { m.Embed = json.RawMessage(`{"chain": [1]}`) }, "embed.chain"},
		"chord without task":  {func(m *celery.Message) { m.Embed = json.RawMessage(`{"chord": {}}`) }, "embed.chord"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := celery.Message{ID: "id", Name: "proj.add", Args: json.RawMessage(`[1]`)}
			tt.change(&m)
			_, err := m.Publishing(now)
			wrong, ok := errors.AsType[*celery.MessageError](err)
			if !ok {
				t.Fatalf("error = %v, want a *MessageError", err)
			}
			if wrong.Path != tt.path {
				t.Errorf("path = %s, want %s: %v", wrong.Path, tt.path, err)
			}
		})
	}
}

func TestMessageTakesWhatKombuWraps(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		`[{"__type__": "datetime", "__value__": "2026-11-21T00:49:15.467538+00:00"}]`,
		`[{"__type__": "datetime", "__value__": "2026-11-21T00:49:15"}]`,
		`[{"__type__": "date", "__value__": "2026-11-21"}]`,
		`[{"__type__": "time", "__value__": "00:49:15.467538-05:30"}]`,
		`[{"__type__": "decimal", "__value__": "-1.10"}, {"__type__": "decimal", "__value__": "1E+30"}]`,
		`[{"__type__": "decimal", "__value__": "NaN"}, {"__type__": "decimal", "__value__": "-Infinity"}]`,
		`[{"__type__": "uuid", "__value__": {"hex": "0123456789abcdef0123456789abcdef"}}]`,
		`[{"__type__": "bytes", "__value__": "ü"}, {"__type__": "base64", "__value__": "/wA="}]`,
		`[{"__type__": "set", "__value__": [], "more": 1}]`,
	} {
		if _, err := (celery.Message{ID: "id", Name: "add", Args: json.RawMessage(args)}).Publishing(now); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestParseMessageReadsBack(t *testing.T) {
	t.Parallel()
	want := celery.Message{
		ID: "id-1", Name: "proj.add", Args: json.RawMessage(`[1, 12345678901234567890]`), Kwargs: json.RawMessage(`{"a": 1.0}`),
		RootID: "root", ParentID: "parent", GroupID: "group", Shadow: "shown", Origin: "gen1@host", Retries: 3,
		ETA: now.Add(time.Minute), Expires: now.Add(time.Hour), HardLimit: new(10.0), SoftLimit: new(0.5), Priority: new(uint8(3)),
		Embed: json.RawMessage(`{"callbacks": null, "errbacks": null, "chain": [{"task": "next"}], "chord": null}`),
		Headers: map[string]any{
			"mine": "x", "group_index": int64(4), "ignore_result": true, "replaced_task_nesting": int64(0),
			"stamped_headers": nil, "stamps": map[string]any{},
		},
	}
	p, err := want.Publishing(now)
	if err != nil {
		t.Fatal(err)
	}
	p.Headers["redelivered"], p.Headers["x-death"] = true, []any{}
	got, err := celery.ParseMessage(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
	if _, err := got.Publishing(now); err != nil {
		t.Errorf("publish again: %v", err)
	}
}

func TestParseMessage(t *testing.T) {
	t.Parallel()
	two := func(body string) broker.Publishing {
		return broker.Publishing{
			ContentType: "application/json", Headers: map[string]any{"task": "add", "id": "i"}, Body: []byte(body),
		}
	}
	zlib := two("x\x9c\x8b\x8e6\x8c\xd5Q\xa8\xae\x05\x92\xb5\xb1\x00\x1b\x89\x04\x04")
	zlib.Headers["compression"] = "application/x-gzip"
	pickled := two("\x80\x02]q\x00.")
	pickled.ContentType = "application/x-python-serialize"
	typed := func(kind, body string) broker.Publishing {
		p := two(body)
		p.ContentType = "application/" + kind
		return p
	}
	lzma := two("x")
	lzma.Headers["compression"] = "application/x-lzma"
	first := broker.Publishing{ContentType: "application/json", Body: []byte(
		`{"task": "add", "id": "i", "args": [1], "kwargs": {"a": 2}, "retries": 1, "eta": null, "taskset": "g", "timelimit": [null, 5]}`)}
	tests := map[string]struct {
		in           broker.Publishing
		name         string
		args, kwargs string
		wrong        string
	}{
		"protocol 2":        {in: two(`[[1], {"a": 2}, {}]`), name: "add", args: `[1]`, kwargs: `{"a": 2}`},
		"embed null":        {in: two(`[[], {}, null]`), name: "add", args: `[]`, kwargs: `{}`},
		"protocol 1":        {in: first, name: "add", args: `[1]`, kwargs: `{"a": 2}`},
		"pickle":            {in: pickled, name: "add", wrong: "pickle"},
		"yaml":              {in: typed("x-yaml", "- [1]\n- a: 2\n- {}\n"), name: "add", args: `[1]`, kwargs: `{"a":2}`},
		"msgpack":           {in: typed("x-msgpack", "\x93\x91\x01\x81\xa1a\x02\x80"), name: "add", args: `[1]`, kwargs: `{"a":2}`},
		"other":             {in: typed("x-xml", "<a/>"), name: "add", wrong: "application/x-xml"},
		"yaml, a number":    {in: typed("x-yaml", "- [1]\n- 1: 2\n- {}\n"), name: "add", wrong: "a key is not text"},
		"yaml, a set":       {in: typed("x-yaml", "- [!!set {a}]\n- {}\n- {}\n"), name: "add", wrong: "!!set of YAML"},
		"yaml, a tuple":     {in: typed("x-yaml", "- !!python/tuple [1]\n- {}\n- {}\n"), name: "add", wrong: "python/tuple of YAML"},
		"yaml, cut":         {in: typed("x-yaml", "- [1"), name: "add", wrong: "malformed YAML"},
		"msgpack, a number": {in: typed("x-msgpack", "\x93\x90\x81\x01\x02\x80"), name: "add", wrong: "a key is not text"},
		"msgpack, a time":   {in: typed("x-msgpack", "\x93\x91\xd6\xff\x00\x00\x00\x00\x80\x80"), name: "add", wrong: "extension type"},
		"xz":                {in: lzma, name: "add", wrong: "compression"},
		"broken zlib":       {in: zlib, name: "add", wrong: "decompress"},
		"NaN":               {in: two(`[[NaN], {}, {}]`), name: "add", wrong: "args"},
		"two elements":      {in: two(`[[], {}]`), name: "add", wrong: "body"},
		"four elements":     {in: two(`[[], {}, {}, {}]`), name: "add", wrong: "body"},
		"cut":               {in: two(`[[], {}, `), name: "add", wrong: "body"},
		"more after it":     {in: two(`[[], {}, {}] x`), name: "add", wrong: "body"},
		"kwargs null":       {in: two(`[[], null, {}]`), name: "add", wrong: "kwargs"},
		"nothing":           {in: broker.Publishing{}, wrong: "content type"},
		"no task":           {in: broker.Publishing{ContentType: "application/json", Body: []byte(`{"a": 1}`)}, wrong: "no task"},
		"protocol 1 cut":    {in: broker.Publishing{ContentType: "application/json", Body: []byte(`{"task": "a"`)}, wrong: "no task"},
		"protocol 1 number": {in: broker.Publishing{ContentType: "application/json", Body: []byte(`{"task": 1}`)}, wrong: "no task"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := celery.ParseMessage(tt.in)
			if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("error = %v, want one with %q", err, tt.wrong)
			}
			if got.Name != tt.name || string(got.Args) != tt.args || string(got.Kwargs) != tt.kwargs {
				t.Errorf("got %s %s %s, want %s %s %s", got.Name, got.Args, got.Kwargs, tt.name, tt.args, tt.kwargs)
			}
		})
	}
}

// FuzzParseMessage checks that whatever can be read can be published again, or is refused, and nothing panics.
func FuzzParseMessage(f *testing.F) {
	f.Add(`[[1], {"a": 2}, {"chain": [{"task": "x"}]}]`, "application/json", true)
	f.Add(`{"task": "add", "id": "i", "args": [1], "kwargs": {}}`, "application/json", false)
	f.Add(`[[{"__type__": "time", "__value__": "+"}], {}, null]`, "application/json", true)
	f.Fuzz(func(t *testing.T, body, contentType string, second bool) {
		p := broker.Publishing{ContentType: contentType, Body: []byte(body), Headers: map[string]any{}}
		if second {
			p.Headers["task"], p.Headers["id"] = "add", "i"
		}
		m, err := celery.ParseMessage(p)
		if err != nil {
			if m.Args != nil || m.Kwargs != nil {
				t.Fatalf("arguments %s %s beside error %v", m.Args, m.Kwargs, err)
			}
			return
		}
		m.ID, m.ETA, m.Expires, m.HardLimit, m.SoftLimit = "i", time.Time{}, time.Time{}, nil, nil
		again, err := m.Publishing(now)
		if err != nil {
			return
		}
		back, err := celery.ParseMessage(again)
		if err != nil || string(back.Args) != string(m.Args) || string(back.Kwargs) != string(m.Kwargs) {
			t.Fatalf("read back %s %s, %v; want %s %s", back.Args, back.Kwargs, err, m.Args, m.Kwargs)
		}
	})
}
