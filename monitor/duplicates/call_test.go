package duplicates_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/state"
)

func shown(args, kwargs string) *state.Task {
	return &state.Task{ID: "t", Name: new("shop.pay"), Args: &args, Kwargs: &kwargs}
}

func callOf(t *testing.T, args, kwargs string) state.CallID {
	t.Helper()
	a, ok := duplicates.ArgumentsOf(shown(args, kwargs))
	if !ok {
		t.Fatalf("arguments %s %s are not known", args, kwargs)
	}
	return a.Call("shop.pay", nil)
}

func TestCallsAreEqualWhateverTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	one := callOf(t, "(1, 'x')", "{'a': 1, 'b': [None, True]}")
	if other := callOf(t, "[1, 'x']", "{'b': [None, True], 'a': 1}"); other != one || !one.Known() {
		t.Errorf("calls are %s and %s, want them equal", one, other)
	}
	for _, different := range [][2]string{
		{"(1, 'x')", "{'a': 1, 'b': [None, False]}"},
		{"('1', 'x')", "{'a': 1, 'b': [None, True]}"},
		{"()", "{'a': 1, 'b': [None, True]}"},
		{"(1.0, 'x')", "{'a': 1, 'b': [None, True]}"},
	} {
		if callOf(t, different[0], different[1]) == one {
			t.Errorf("call %s %s is equal to another", different[0], different[1])
		}
	}
	if a, _ := duplicates.ArgumentsOf(shown("(1, 'x')", "{}")); a.Call("shop.ship", nil) == a.Call("shop.pay", nil) {
		t.Error("calls of two tasks are equal")
	}
}

// TestCallOfALock has the call of a task without positional arguments be that of the key of its lock.
func TestCallOfALock(t *testing.T) {
	t.Parallel()
	kwargs, err := idempotency.Parse([]byte(`{"order": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	key, err := idempotency.Fingerprint("shop.pay", kwargs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := callOf(t, "()", "{'order': 1}"), duplicates.CallOf(key); got != want {
		t.Errorf("call %s, want that of the lock, %s", got, want)
	}
}

// TestWhatIsNotWholeIsNeverGrouped has the reprs that Celery cuts, hides, or that are ambiguous.
func TestWhatIsNotWholeIsNeverGrouped(t *testing.T) {
	t.Parallel()
	for _, r := range [][2]string{
		{"('long text...',)", "{}"},
		{"(1, ...)", "{}"},
		{"()", "{...}"},
		{"()", "{'a': [[...]]}"},
		{"()", "{'password': '***'}"},
		{`('C:\\new',)`, "{}"},
		{"(datetime.datetime(2026, 11, 22),)", "{}"},
		{"(<Order 1>,)", "{}"},
		{"(nan,)", "{}"},
		{"(1", "{}"},
		{"(1)", "{}"},
		{"None", "None"},
		{"None", "{}"},
		{"()", "None"},
		{"", ""},
		{"{}", "()"},
		{"'()'", "{}"},
		{"()", "{'a': 1, 'a': 2}"},
		{"()", "{1: 2}"},
		{"(b'x',)", "{}"},
		{"({1, 2},)", "{}"},
		{"(Decimal('1.2'),)", "{}"},
		{"(\"it's\",)", "{}"},
		{"(-0,)", "{}"},
		{"(0x1f,)", "{}"},
		{"(1_000,)", "{}"},
	} {
		if _, ok := duplicates.ArgumentsOf(shown(r[0], r[1])); ok {
			t.Errorf("arguments %s %s are taken to be whole", r[0], r[1])
		}
	}
	if _, ok := duplicates.ArgumentsOf(&state.Task{Args: new("()")}); ok {
		t.Error("arguments that no event showed are taken to be known")
	}
}

// TestHostileReprs has reprs that are large, deep, or look like code. They are refused, or parsed, within 10 ms,
// which a machine that is busy with other tests is given ten times over.
func TestHostileReprs(t *testing.T) {
	t.Parallel()
	limit := 100 * time.Millisecond
	if testenv.Thorough() {
		limit = 10 * time.Millisecond
	}
	const large = 1 << 20
	for name, r := range map[string]string{
		"deep lists":      strings.Repeat("[", large),
		"deep dicts":      strings.Repeat("{'a': ", large/6),
		"deep tuples":     strings.Repeat("(", 60_000) + strings.Repeat(",)", 60_000),
		"one text":        "('" + strings.Repeat("x", large) + "',)",
		"quotes":          "('" + strings.Repeat(`\'`, large/2) + "',)",
		"open text":       "('" + strings.Repeat("x ", large/2),
		"a number":        "(" + strings.Repeat("9", large) + ",)",
		"many numbers":    "(" + strings.Repeat("1, ", 8<<10/3-10) + "1)",
		"many texts":      "(" + strings.Repeat("'a', ", 8<<10/5-10) + "'a')",
		"one key":         "{" + strings.Repeat("'a': 1, ", 8<<10/8-10) + "'a': 1}",
		"code":            "(__import__('os').system('true'),)",
		"comprehension":   "([0 for _ in range(10**9)],)",
		"power":           "(9**9**9,)",
		"lambda":          "((lambda: 1)(),)",
		"f-string":        "(f'{1}',)",
		"nul":             "('\x00',)",
		"broken UTF-8":    "('\xff',)",
		"half surrogates": "('\xed\xa0\x80',)",
	} {
		for _, task := range []*state.Task{shown(r, "{}"), shown("()", r), {Name: new("t"), Result: &r, State: state.Success}} {
			best := time.Hour
			for range 5 { // other tests run too
				begin := time.Now()
				if a, ok := duplicates.ArgumentsOf(task); ok {
					a.Call("t", nil)
				}
				state.SkipReason(task.Result)
				best = min(best, time.Since(begin))
			}
			if best > limit {
				t.Errorf("%s took %v, want at most %v", name, best, limit)
			}
		}
	}
}

func FuzzArgumentsOf(f *testing.F) {
	f.Add("(1, 'x')", "{'a': [None]}")
	f.Add(`('it\'s',)`, "{}")
	f.Fuzz(func(t *testing.T, args, kwargs string) {
		a, ok := duplicates.ArgumentsOf(shown(args, kwargs))
		if again, _ := duplicates.ArgumentsOf(shown(args, kwargs)); ok && a.Call("t", nil) != again.Call("t", nil) {
			t.Error("one call has two ids")
		}
	})
}

// TestExcludedFieldsDoNotCount draws calls that differ in one field only.
func TestExcludedFieldsDoNotCount(t *testing.T) {
	t.Parallel()
	without, err := idempotency.New(idempotency.Options{Without: []string{"request_id"}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		order, first, second := rapid.Int().Draw(t, "order"), rapid.Int().Draw(t, "first"), rapid.Int().Draw(t, "second")
		call := func(request int, f *idempotency.Fingerprinter) state.CallID {
			args, err := idempotency.ValueOf([]any{order})
			if err != nil {
				t.Fatal(err)
			}
			kwargs, err := idempotency.ValueOf(map[string]any{"request_id": request, "n": 1})
			if err != nil {
				t.Fatal(err)
			}
			return duplicates.Arguments{Args: args, Kwargs: kwargs}.Call("t", f)
		}
		if call(first, without) != call(second, without) {
			t.Error("a field that does not count makes a difference")
		}
		if (call(first, nil) == call(second, nil)) != (first == second) {
			t.Error("a field that counts makes no difference")
		}
	})
}
