package idempotency_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

func TestFingerprintIsPythons(t *testing.T) {
	t.Parallel()
	got, err := idempotency.Fingerprint("payments.charge", parse(t, `{"order_id": 17, "amount": 9.5, "note": "ü"}`))
	want := "celery:exec:payments.charge:728ff3cf71ad4b921c879d45fb15d2fe5a30fe7d055310db131f6076092fb286"
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestCallWithoutPositionalArgumentsEqualsFingerprint(t *testing.T) {
	t.Parallel()
	kwargs := parse(t, `{"a": 1}`)
	want, err := idempotency.Fingerprint("t", kwargs)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]idempotency.Value{"empty": parse(t, `[]`), "none": {}} {
		if got, err := idempotency.Call("t", args, kwargs); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	got, err := idempotency.Call("t", parse(t, `[17]`), parse(t, `{"amount": 9.5}`))
	if want := "celery:exec:t:d23debed181e15744cd145f6cdf5be46124af39403f91d01af5d101d0447004d"; err != nil || got != want {
		t.Errorf("with arguments: got %s, %v, want %s", got, err, want)
	}
}

func TestCallRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	for want, call := range map[string][2]string{
		"args: must be an array":    {`{}`, `{}`},
		"kwargs: must be an object": {`[]`, `[]`},
	} {
		if _, err := idempotency.Call("t", parse(t, call[0]), parse(t, call[1])); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestReduce(t *testing.T) {
	t.Parallel()
	const args = `["x", {"at": 1, "b": 2}, "y"]`
	const kwargs = `{"id": 7, "at": 1.255, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2.675}, 3], "x.y": {"z": [1, 2]}}`
	tests := map[string]struct {
		only, without []string
		precision     *int
		want          string
	}{
		"everything":     {nil, nil, nil, `["x",{"at":1,"b":2},"y"] {"at":1.255,"id":7,"lines":[{"n":1,"sku":"a"},{"n":2.675,"sku":"b"},3],"x.y":{"z":[1,2]}}`},
		"without a key":  {nil, []string{"at", "lines", "none.there"}, nil, `["x",{"at":1,"b":2},"y"] {"id":7,"x.y":{"z":[1,2]}}`},
		"without args":   {nil, []string{"[0]", "[1].at", "at", "lines", `["x.y"]`}, nil, `[{"b":2},"y"] {"id":7}`},
		"without any":    {nil, []string{"[*]", "lines[*].n", "at", `["x.y"].z[1]`}, nil, `[] {"id":7,"lines":[{"sku":"a"},{"sku":"b"},3],"x.y":{"z":[1]}}`},
		"only":           {[]string{"id", "lines[*].sku"}, nil, nil, `[] {"id":7,"lines":[{"sku":"a"},{"sku":"b"}]}`},
		"only and not":   {[]string{"lines", "[1]"}, []string{"lines[*]"}, nil, `[{"at":1,"b":2}] {"lines":[]}`},
		"two ways there": {[]string{"lines[0].n", "lines[*].sku"}, nil, nil, `[] {"lines":[{"n":1,"sku":"a"},{"sku":"b"}]}`},
		"precision":      {[]string{"at", "lines"}, nil, new(2), `[] {"at":1.25,"lines":[{"n":1,"sku":"a"},{"n":2.67,"sku":"b"},3]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := idempotency.New(idempotency.Options{Only: tt.only, Without: tt.without, Precision: tt.precision})
			if err != nil {
				t.Fatal(err)
			}
			a, k, err := f.Reduce(parse(t, args), parse(t, kwargs))
			if got := a.String() + " " + k.String(); err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]idempotency.Options{
		`precision 16: must be 0 to 15`:             {Precision: new(16)},
		`precision -1: must be 0 to 15`:             {Precision: new(-1)},
		`101 paths: at most 100 are allowed`:        {Only: make([]string, 101)},
		`path "": a key must be letters`:            {Only: []string{""}},
		`path "a..b": a key must be letters`:        {Without: []string{"a..b"}},
		`path "a.": a key must be letters`:          {Without: []string{"a."}},
		`path "a b": a dot must stand between keys`: {Without: []string{"a b"}},
		`path "[01]": an index must be a number`:    {Without: []string{"[01]"}},
		`path "[": an index must be a number`:       {Without: []string{"["}},
		`path "[\"a": a key between [ and ]`:        {Without: []string{`["a`}},
	} {
		if _, err := idempotency.New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func parse(t *testing.T, text string) idempotency.Value {
	t.Helper()
	v, err := idempotency.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
