package fingerprint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state/fingerprint"
)

// sample reads a file with an exception's repr, an empty line and the traceback, as Celery sent them.
func sample(t *testing.T, name string) (exception, traceback string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	exception, traceback, ok := strings.Cut(string(b), "\n\n")
	if !ok {
		t.Fatalf("%s has no traceback", name)
	}
	return exception, traceback
}

func TestOfWhatCelerySends(t *testing.T) {
	t.Parallel()
	tests := map[string]fingerprint.Fingerprint{
		"declined":  {Type: "PaymentDeclined", Message: "(<n>, <text>)", Place: "billing.py in charge"},
		"file":      {Type: "FileNotFoundError", Message: "[Errno <n>] No such file or directory: <text>", Place: "billing.py in read"},
		"key":       {Type: "KeyError", Message: "<text>", Place: "billing.py in lookup"},
		"json":      {Type: "JSONDecodeError", Message: "Expecting property name enclosed in double quotes: line <n> column <n> (char <n>)", Place: "billing.py in load"},
		"chain":     {Type: "RuntimeError", Message: "no user <text> at <time>", Place: "billing.py in chain"},
		"context":   {Type: "KeyError", Message: "<text>", Place: "billing.py in lookup"},
		"async":     {Type: "ConnectionError", Message: "cannot reach <address> (attempt <n>)", Place: "billing.py in get"},
		"group":     {Type: "ExceptionGroup", Message: "many (<n> sub-exceptions)", Place: "billing.py in group"},
		"net":       {Type: "URLError", Message: "<urlopen error [Errno <n>] Connection refused>", Place: "billing.py in net"},
		"multi":     {Type: "ValueError", Message: "line one Traceback (most recent call last): File <text>, line <n>, in fake line two", Place: "billing.py in multi"},
		"recursion": {Type: "RecursionError", Message: "maximum recursion depth exceeded", Place: "billing.py in rec"},
		"syntax":    {Type: "SyntaxError", Message: "invalid syntax", Place: "billing.py in syntax"},
		"odd":       {Type: "Odd", Place: "billing.py in odd"},
		"bare":      {Type: "KeyError", Place: "billing.py in bare"},
		"eval":      {Type: "ZeroDivisionError", Message: "division by zero", Place: "billing.py in evald"},
		"timelimit": {Type: "TimeLimitExceeded", Message: "<n>", Place: "pool.py in on_hard_timeout"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fingerprint.Of(sample(t, name))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fingerprint (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfAReprAlone(t *testing.T) {
	t.Parallel()
	tests := map[string]fingerprint.Fingerprint{
		"":                                {},
		"None":                            {},
		"ExceptionWithTraceback()":        {},
		"KeyError()":                      {Type: "KeyError"},
		"NotRegistered('shop.tasks.old')": {Type: "NotRegistered", Message: "shop.tasks.old"},
		`ValueError("it isn't 'a b'")`:    {Type: "ValueError", Message: "it isn't <text>"},
		`ValueError('it isn\'t\n12')`:     {Type: "ValueError", Message: "it isn't <n>"},
		"OSError(2, 'No such file')":      {Type: "OSError", Message: "<n>, <text>"},
		"shop.errors.Gone('a', 'b')":      {Type: "Gone", Message: "<text>"},
		"WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL) Job: 12.')": {
			Type: "WorkerLostError", Message: "Worker exited prematurely: signal <n> (SIGKILL) Job: <n>.",
		},
		"reject requeue=False: endpoint 17 is disabled": {Message: "reject requeue=False: endpoint <n> is disabled"},
		"<Odd at 0x7f1481b1cdc0>":                       {Message: "<Odd at <hex>>"},
		"Ärger('x')":                                    {Type: "Ärger", Message: "x"},
		"2('x')":                                        {Message: "<n>(<text>)"},
	}
	for repr, want := range tests {
		t.Run(repr, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, fingerprint.Of(repr, "")); diff != "" {
				t.Errorf("fingerprint of %s (-want +got):\n%s", repr, diff)
			}
		})
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"order 17 of 1,000 at 1.5 and -3":                       "order <n> of <n> at <n> and -<n>",
		"user 123e4567-e89b-12d3-a456-426614174000 gone":        "user <id> gone",
		"token d41d8cd98f00b204e9800998ecf8427e":                "token <id>",
		"commit 9f3c2a1b, object at 0xDEADBEEF":                 "commit <hex>, object at <hex>",
		"charge ch_1a2b3c4d5e of ORD-4711 for SKU-00017":        "charge ch_<hex> of ORD-<n> for SKU-<n>",
		"session aZ3kP9qW7xLm2Vb8 ended":                        "session <id> ended",
		"no column \"age\" in 'people'":                         "no column <text> in <text>",
		"it's late, isn't it":                                   "it's late, isn't it",
		"b'\\xff' and rb\"x\" and b2":                           "<text> and <text> and b<n>",
		"the users' own":                                        "the users' own",
		"mail to ann@example.org bounced":                       "mail to <address> bounced",
		"lost celery@host-7.":                                   "lost <address>.",
		"cannot reach 10.0.0.7:5432, ::1, fe80::1%eth0":         "cannot reach <address>, fe<n>::<n>%eth<n>",
		"open /srv/data/17.csv: C:\\data\\17.csv, ./x ../y ~/z": "open <path>: <path> <path> <path>",
		"and/or text/html 24/7":                                 "and/or text/html <n>/<n>",
		"GET https://example.org/a?b=1: 503":                    "GET <url>: <n>",
		"at 2026-11-21 04:05:06.000789 or 2026-11-21T04:05:06Z": "at <time> or <time>",
		"at 2026-11-21T04:05:06+01:00, until 23:59":             "at <time>, until <time>",
		"ids (1, 2, 3) or ['a', 'b']":                           "ids (<n>) or [<text>]",
		"  two\n\tlines ":                                       "two lines",
		"Größe 5 fehlt, 数量 7":                                   "Größe <n> fehlt, 数量 <n>",
		"cut off: '" + strings.Repeat("long ", 100):             "cut off: <text>",
		strings.Repeat("word ", 100):                            strings.TrimSpace(strings.Repeat("word ", 60)),
		"line <n> of <text> at <address>":                       "line <n> of <text> at <address>",
		"Can't retry shop.add[123e4567-e89b-12d3-a456-426614174000] args:(1, 'x') kwargs:{}": "Can't retry shop.add[<id>] args:(<n>, <text>) kwargs:{}",
	}
	for message, want := range tests {
		t.Run(message, func(t *testing.T) {
			t.Parallel()
			got := fingerprint.Of("", "Traceback (most recent call last):\nError: "+message)
			if got.Message != want {
				t.Errorf("message %q\n got %q\nwant %q", message, got.Message, want)
			}
			again := fingerprint.Of("", "Traceback (most recent call last):\nError: "+got.Message)
			if again.Message != got.Message {
				t.Errorf("message %q becomes %q the second time", got.Message, again.Message)
			}
		})
	}
}

func TestOneBugOneFingerprint(t *testing.T) {
	t.Parallel()
	exception, traceback := sample(t, "json")
	want := fingerprint.Of(exception, traceback).ID("shop.load")
	for name, edit := range map[string]*strings.Replacer{
		"another line":               strings.NewReplacer("line 16, in load", "line 61, in load"),
		"another directory":          strings.NewReplacer("/srv/shop/shop/", "/opt/releases/20261121/shop/"),
		"another virtualenv":         strings.NewReplacer("/srv/shop/venv/lib/python3.11", "/home/w/.venv/lib/python3.14"),
		"another Python":             strings.NewReplacer("/usr/lib/python3.11", "/opt/python/lib/python3.13t"),
		"no positions":               strings.NewReplacer("^", ""),
		"Windows":                    strings.NewReplacer("/srv/shop/venv/lib/python3.11/", `D:\venv\Lib\`, "/srv/shop/shop/", `D:\shop\`, "/usr/lib/python3.11/json/", `C:\Program Files\Python311\Lib\json\`),
		"another place in the input": strings.NewReplacer("line 1 column 2 (char 1)", "line 3 column 40 (char 77)"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := edit.Replace(traceback)
			if changed == traceback {
				t.Fatal("nothing was changed")
			}
			if got := fingerprint.Of(edit.Replace(exception), changed).ID("shop.load"); got != want {
				t.Errorf("fingerprint = %+v", fingerprint.Of(exception, changed))
			}
		})
	}
}

func TestBugsAreToldApart(t *testing.T) {
	t.Parallel()
	exception, traceback := sample(t, "json")
	seen := map[fingerprint.ID]string{fingerprint.Of(exception, traceback).ID("shop.load"): "the first"}
	for name, id := range map[string]fingerprint.ID{
		"another task":     fingerprint.Of(exception, traceback).ID("shop.other"),
		"another function": fingerprint.Of(exception, strings.ReplaceAll(traceback, "in load", "in store")).ID("shop.load"),
		"another type":     fingerprint.Of(exception, strings.ReplaceAll(traceback, "JSONDecodeError", "KeyError")).ID("shop.load"),
		"another message":  fingerprint.Of(exception, strings.ReplaceAll(traceback, "Expecting property", "Expecting value")).ID("shop.load"),
		"no traceback":     fingerprint.Of(exception, "").ID("shop.load"),
		"other":            fingerprint.Other().ID("shop.load"),
		"nothing":          fingerprint.Of("", "").ID("shop.load"),
		"parts moved":      fingerprint.Fingerprint{Type: "A", Message: "B"}.ID("n"),
		"parts joined":     fingerprint.Fingerprint{Type: "AB"}.ID("n"),
	} {
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the group of %s", name, other)
		}
		seen[id] = name
	}
}

func TestIDsAreStable(t *testing.T) {
	t.Parallel()
	// Stores keep them: a change here orphans what was resolved.
	id := fingerprint.Fingerprint{Type: "ValueError", Message: "no <n>", Place: "a.py in f"}.ID("shop.add")
	if got, want := id.String(), "0dd7dc58725190cd"; got != want {
		t.Errorf("id = %s, want %s", got, want)
	}
	back, ok := fingerprint.ParseID(id.String())
	if back != id || !ok {
		t.Errorf("ParseID(%q) = %v, %v", id.String(), back, ok)
	}
	for _, wrong := range []string{"", "0", "0000000000000000", "0dd7dc58725190c", "0DD7DC58725190CD", "ffffffffffffffff", "0dd7dc58725190cd0", "0dd7dc58725190cg", "é"} {
		if id, ok := fingerprint.ParseID(wrong); ok {
			t.Errorf("ParseID(%q) = %v", wrong, id)
		}
	}
}

func TestPartsFoldLibraryCalls(t *testing.T) {
	t.Parallel()
	type part struct {
		Frames  int
		Library bool
	}
	tests := map[string][]part{
		"declined": {{}, {1, true}, {2, false}, {}},
		"async":    {{}, {1, true}, {2, false}, {3, true}, {1, false}, {}},
		"chain":    {{}, {2, false}, {}, {1, true}, {2, false}, {}},
		"group":    {{}, {1, true}, {2, false}, {}},
		"syntax":   {{}, {1, true}, {2, false}, {1, true}, {}},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, traceback := sample(t, name)
			var got []part
			joined := ""
			for _, p := range fingerprint.Parts(traceback) {
				got = append(got, part{p.Frames, p.Library})
				joined += p.Text
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if joined != traceback {
				t.Errorf("parts joined = %q, want the traceback", joined)
			}
		})
	}
}

func TestPlaceIsOfTheApplication(t *testing.T) {
	t.Parallel()
	for file, own := range map[string]bool{
		"/srv/shop/tasks.py":                             true,
		"/celery/app/tasks.py":                           true,
		"tasks.py":                                       true,
		`C:\shop\Lib\tasks.py`:                           true,
		"/srv/lib/python-tools/tasks.py":                 true,
		"/venv/lib/python3.12/site-packages/celery/x.py": false,
		"/usr/lib/python3/dist-packages/celery/x.py":     false,
		"/usr/lib/python3.13t/json/decoder.py":           false,
		"/opt/pypy/lib/pypy3.10/json/decoder.py":         false,
		`C:\Program Files\Python312\Lib\json\decoder.py`: false,
		`D:\venv\Lib\site-packages\celery\x.py`:          false,
		"<string>":                                       false,
		"<frozen importlib._bootstrap>":                  false,
	} {
		traceback := "Traceback (most recent call last):\n  File \"/app/outer.py\", line 1, in outer\n" +
			"  File \"" + file + "\", line 2, in inner\nE: x\n"
		got := fingerprint.Of("", traceback).Place
		if is := !strings.HasPrefix(got, "outer.py"); is != own {
			t.Errorf("place with %s innermost = %q, want that: %v", file, got, own)
		}
	}
	init := "Traceback (most recent call last):\n  File \"/app/shop/__init__.py\", line 1, in load\nE: x\n"
	if got, want := fingerprint.Of("", init).Place, "shop/__init__.py in load"; got != want {
		t.Errorf("place = %q, want %q", got, want)
	}
}

func FuzzOf(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		exception, traceback, _ := strings.Cut(string(b), "\n\n")
		f.Add(exception, traceback)
	}
	f.Add("ValueError('\\", "Traceback (most recent call last):\nE: '")
	f.Add("E(\"'1'x y'\")", "Traceback (most recent call last):\n  File \"\", line , in \n: ")
	f.Fuzz(func(t *testing.T, exception, traceback string) {
		got := fingerprint.Of(exception, traceback)
		if len(got.Type) > 100 || len(got.Message) > 900 || len(got.Place) > 200 {
			t.Errorf("unbounded: %d, %d and %d bytes", len(got.Type), len(got.Message), len(got.Place))
		}
		if again := fingerprint.Of(exception, traceback); again != got {
			t.Errorf("fingerprint = %+v, then %+v", got, again)
		}
		if len(got.Message) < 300 {
			again := fingerprint.Of("", "Traceback (most recent call last):\nE: "+got.Message)
			if again.Message != got.Message {
				t.Errorf("message %q becomes %q", got.Message, again.Message)
			}
		}
		if id, ok := fingerprint.ParseID(got.ID("n").String()); !ok || id != got.ID("n") {
			t.Errorf("id %v does not come back", got.ID("n"))
		}
		joined := ""
		for _, p := range fingerprint.Parts(traceback) {
			joined += p.Text
		}
		if joined != traceback {
			t.Errorf("parts joined = %q, want %q", joined, traceback)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	file, err := os.ReadFile(filepath.Join("testdata", "async.txt"))
	if err != nil {
		b.Fatal(err)
	}
	exception, traceback, _ := strings.Cut(string(file), "\n\n")
	b.ReportAllocs()
	for b.Loop() {
		fingerprint.Of(exception, traceback)
	}
}
