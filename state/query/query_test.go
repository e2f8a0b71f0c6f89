package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

func TestFacets(t *testing.T) {
	t.Parallel()
	failure, retry := query.Equal(query.State, "failure"), query.Equal(query.State, "RETRY")
	q := parse(t, "state:failure,retry -state:started x")
	tests := map[string]struct {
		got  query.Query
		want string
	}{
		"to nothing":         {query.Query{}.With(failure), "state:failure"},
		"another value":      {parse(t, "state:failure").With(retry), "state:failure,retry"},
		"another field":      {q.With(query.Equal(query.Name, "a*", "b c")), `-state:started name:"a*","b c" state:failure,retry x`},
		"held already":       {q.With(retry), "-state:started state:failure,retry x"},
		"more text":          {q.With(query.Equal(query.Any, "OR")), `"OR" -state:started state:failure,retry x`},
		"in a text":          {q.With(query.Equal(query.Exception, "a")), "-state:started exc:a state:failure,retry x"},
		"a range":            {query.Query{}.With(query.Between(query.Retries, 1, 3)), "retries:1..2"},
		"one value less":     {q.Without(failure), "-state:started state:retry x"},
		"condition less":     {q.Without(failure).Without(retry), "-state:started x"},
		"not held":           {q.Without(query.Equal(query.Name, "a")), "-state:started state:failure,retry x"},
		"last one":           {parse(t, "state:retry").Without(retry), ""},
		"toggled off":        {q.Toggle(retry), "-state:started state:failure x"},
		"toggled on":         {q.Toggle(retry).Toggle(retry), "-state:started state:failure,retry x"},
		"field dropped":      {q.Drop(query.State), "-state:started x"},
		"alternatives stay":  {parse(t, "state:a OR name:b").With(failure), "(name:b OR state:a) state:failure"},
		"both":               {q.And(parse(t, "x y OR z")), "-state:started state:failure,retry x (x y OR z)"},
		"both, one for all":  {q.And(query.Query{}), "-state:started state:failure,retry x"},
		"everything or some": {query.New(query.Or{query.And{}, failure}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.got.String(); got != tt.want {
				t.Errorf("query = %s, want %s", got, tt.want)
			}
		})
	}
	if !q.Has(failure) || q.Has(query.Equal(query.State, "started")) || q.Has(query.Equal(query.Name, "a")) {
		t.Errorf("%s has the wrong terms", q)
	}
	if got, want := q.String(), "-state:started state:failure,retry x"; got != want {
		t.Errorf("query afterwards = %s, want %s", got, want)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                           nil,
		"a":                          {"a"},
		"a OR b":                     {"a OR b"},
		"state:failure (a OR b) -c ": {"-c", "a OR b", "state:failure"},
	} {
		var got []string
		joined := query.Query{}
		for _, c := range parse(t, in).Conditions() {
			got = append(got, c.String())
			joined = joined.And(c)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions of %q (-want +got):\n%s", in, diff)
		}
		if diff := cmp.Diff(parse(t, in), joined); diff != "" {
			t.Errorf("conditions of %q joined (-want +got):\n%s", in, diff)
		}
	}
}

func TestSimple(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]*state.Query{
		"": {},
		"state:failure,retry name:a,b worker:w root:r": {
			States: []state.State{state.Failure, state.Retry}, Names: []string{"a", "b"}, Workers: []string{"w"}, Root: "r",
		},
		"name:a*": nil, "name:~a": nil, "a": nil, "-state:failure": nil, "name:a name:b": nil, "root:a,b": nil,
		"name:a OR worker:b": nil, "queue:a": nil, "is:active": nil, "run:1s": nil,
	} {
		got, ok := parse(t, in).Simple()
		if want == nil && !ok {
			continue
		}
		if want == nil || !ok {
			t.Errorf("Simple of %q = %+v, %v, want %+v", in, got, ok, want)
			continue
		}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("Simple of %q (-want +got):\n%s", in, diff)
		}
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]query.Sort{
		"": {}, "run": {Field: query.Run, Ascending: true}, "-retries": {Field: query.Retries}, "-sent": {Field: query.Sent},
		"-worker": {Field: query.Worker}, "name": {Field: query.Name, Ascending: true},
	} {
		got, ok := query.ParseSort(in)
		if !ok || got != want || got.String() != in {
			t.Errorf("ParseSort(%q) = %+v, %v, which reads %q, want %+v", in, got, ok, got, want)
		}
	}
	for _, in := range []string{"args", "-", "--run", "x", "is", " run"} {
		if got, ok := query.ParseSort(in); ok {
			t.Errorf("ParseSort(%q) = %+v, want none", in, got)
		}
	}
}

func TestFieldsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range query.Fields() {
		if f.String() == "" || f.Help() == "" || f.Type() == 0 || seen[f.String()] {
			t.Errorf("field %d is %q, %q, type %d", f, f, f.Help(), f.Type())
		}
		seen[f.String()] = true
		if got, ok := query.FieldNamed(f.String()); !ok || got != f {
			t.Errorf("FieldNamed(%q) = %v, %v, want %v", f, got, ok, f)
		}
	}
	if _, ok := query.FieldNamed(""); ok {
		t.Error("no name is a field")
	}
}
