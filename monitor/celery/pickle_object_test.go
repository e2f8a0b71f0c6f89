package celery_test

import (
	"encoding/hex"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
)

// TestUnpickleDescribesObjects has Python pickle objects in every protocol.
func TestUnpickleDescribesObjects(t *testing.T) {
	t.Parallel()
	const script = `
import collections, datetime as d, decimal, fractions, pickle, uuid
class Order:
    def __init__(self, n): self.n, self.self = n, self
class Boom(Exception):
    def __init__(self, a): super().__init__(a); self.why = {'a': a}
tz = d.timezone(d.timedelta(hours=5, minutes=30))
values = [
  (d.datetime(2026, 11, 21, 9, 5, 3), '"2026-11-21T09:05:03"'),
  (d.datetime(2026, 11, 21, 9, 5, 3, 250, d.timezone.utc), '"2026-11-21T09:05:03.000250+00:00"'),
  (d.datetime(1, 1, 1, tzinfo=tz), '"0001-01-01T00:00:00+05:30"'),
  (d.date(2026, 11, 21), '"2026-11-21"'), (d.time(23, 59, 1), '"23:59:01"'), (d.timedelta(days=1, seconds=61), '"24h1m1s"'),
  (decimal.Decimal('1.10'), '"1.10"'), (uuid.UUID(int=2**100 + 5), '"00000010-0000-0000-0000-000000000005"'),
  ({'when': [d.date(2026, 1, 2)], 'b': b'\xff'}, '{"when": ["2026-01-02"], "b": "/w=="}'),
  ({3}, '[3]'), (frozenset(['x']), '["x"]'), (collections.OrderedDict(a=1), '{"a": 1}'),
  (KeyError('k', 2), '{"__class__": "KeyError", "args": ["k", 2]}'),
  (Boom('x'), '{"__class__": "__main__.Boom", "args": ["x"], "state": {"why": {"a": "x"}}}'),
  (Order(5), '{"__class__": "__main__.Order", "state": {"n": 5, "self": "…"}}'),
  (len, '"len"'),
]
for v, want in values:
    for protocol in range(6):
        print(pickle.dumps(v, protocol).hex())
        print(want)
`
	out, err := exec.CommandContext(t.Context(), testenv.Python(t), "-c", script).Output()
	if err != nil {
		t.Fatalf("run Python: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		b, err := hex.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		got, plain, err := celery.Unpickle(b)
		if err != nil || plain && !strings.HasPrefix(lines[i+1], "[") { // sets have opcodes of their own since protocol 4
			t.Errorf("unpickle %q: %v, plain %v", b, err, plain)
			continue
		}
		if diff := cmp.Diff(decodeNumbers(t, got), decodeNumbers(t, []byte(lines[i+1]))); diff != "" {
			t.Errorf("pickle %q: got - want +\n%s", b, diff)
		}
	}
}

func TestUnpickleExecutesNothing(t *testing.T) {
	t.Parallel()
	for pickle, want := range map[string]string{
		"cos\nsystem\n(S'true'\ntR.":                         `{"__class__":"os.system","args":["true"]}`,
		"\x80\x04\x8c\x02os\x8c\x06system\x93.":              `"os.system"`,
		"(S'true'\nios\nsystem\n.":                           `{"__class__":"os.system","args":["true"]}`,
		"cos\nsystem\nq\x00(h\x00tR(S'a'\nI1\ndb.":           `{"__class__":"os.system","args":["os.system"],"state":{"a":1}}`,
		"cdatetime\ndatetime\n(S'short'\ntR.":                `{"__class__":"datetime.datetime","args":["short"]}`,
		"c__builtin__\nlist\n)R(I1\nI2\ne.":                  `[1,2]`,
		"cx\nDict\n)R(S'a'\nI1\nu.":                          `{"__class__":"x.Dict","pairs":{"a":1}}`,
		"cdatetime\ntimedelta\n(L9999999999L\nK\x00K\x00tR.": `{"__class__":"datetime.timedelta","args":[9999999999,0,0]}`,
	} {
		got, plain, err := celery.Unpickle([]byte(pickle))
		if err != nil || plain || string(got) != want {
			t.Errorf("unpickle %q = %s (plain %v), %v, want %s", pickle, got, plain, err, want)
		}
	}
	for _, pickle := range []string{"", "Pabc\n.", "\x80\x02\x82\x01.", "R.", "I1\nI2\nR.", "}}b.", "b.", "o.", "(o.", "\x93.", "I1\nI2\n\x93.", "cx\n"} {
		if got, _, err := celery.Unpickle([]byte(pickle)); err == nil {
			t.Errorf("unpickle %q = %s, want an error", pickle, got)
		}
	}
	for _, pickle := range []string{"Pabc\n.", "\x80\x02\x82\x01.", "\x80\x04}}b."} {
		if got, _, err := celery.Unpickle([]byte(pickle)); !errors.Is(err, celery.ErrPythonObject) {
			t.Errorf("unpickle %q = %s, %v, want %v", pickle, got, err, celery.ErrPythonObject)
		}
	}
}
