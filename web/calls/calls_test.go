package calls_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/calls"
)

func TestCallsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	long := "'" + strings.Repeat("é", 2_000) + "'"
	tests := map[string]struct {
		args, kwargs *string
		want         string
	}{
		"positional":    {new("(1042, 'EUR')"), new("{}"), `[1042,"EUR"]`},
		"named":         {new("()"), new("{'id': 1, 'ok': True, 'at': None}"), `{"at":null,"id":1,"ok":true}`},
		"both":          {new("(1,)"), new("{'a': [2]}"), `[1] {"a":[2]}`},
		"none":          {new("()"), new("{}"), "[]"},
		"unknown":       {nil, nil, ""},
		"secret":        {new("()"), new("{'password': 'hunter2', 'order': 7}"), `{"order":7,"password":"********"}`},
		"secret in URL": {new("('redis://:hunter2@host/0',)"), new("{}"), `["redis://:********@host/0"]`},
		"unreadable":    {new("(<Order 7>,)"), new("{'password': 'hunter2'}"), `(<Order 7>,) {"password":"********"}`},
		"cut":           {new("('xy..."), new("{}"), "('xy..."},
		"markup":        {new("('<b>&',)"), nil, `["<b>&"]`},
		"long":          {new("(" + long + ",)"), nil, "('" + strings.Repeat("é", 999) + "…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := calls.Of(redact.Default(), []state.Task{{}, {Args: tc.args, Kwargs: tc.kwargs}}); got[0] != "" || got[1] != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSamplesAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	got := calls.OfSamples(redact.Default(), []command.DuplicateRuleSample{
		{Tasks: 2, IDs: []string{"a"}, Args: "[1]", Kwargs: `{"password":"hunter2","order":{"id":7}}`},
		{Args: `["redis://:hunter2@host/0`, Kwargs: `{"password":"hunter2","text":"cu`},
		{Args: `[["password","` + strings.Repeat("hunter2", 100) + `"]]`, Kwargs: `{"x":"` + strings.Repeat("y", 1_000) + `"}`},
	})
	want := []command.DuplicateRuleSample{
		{Tasks: 2, IDs: []string{"a"}, Args: "[1]", Kwargs: `{"order":{"id":7},"password":"********"}`},
		{Args: `["redis://:********@host/0`, Kwargs: `{"password":"********","text":"cu`},
		{Args: `[["password","********"]]`, Kwargs: `{"x":"` + strings.Repeat("y", 494) + "…"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// Hostile reprs must not make a page slow: they take little more time than usual ones.
func TestHostileCallsAreCheap(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	tasks := func(reprs ...string) (list []state.Task) {
		for _, repr := range reprs {
			list = append(list, state.Task{Args: &repr, Kwargs: &repr})
		}
		return list
	}
	usual := tasks("[" + strings.Repeat("'a', ", size/5) + "]")
	hostile := tasks(
		strings.Repeat("[", size), "('"+strings.Repeat(`\'`, size/2)+"',)", "(__import__('os').system('x'),)",
		"{"+strings.Repeat("'password': 'x', ", size/16)+"}", strings.Repeat("\xff", size),
	)
	var got []string
	testenv.AtMost(t, 100, func() { calls.Of(redact.Default(), usual) }, func() { got = calls.Of(redact.Default(), hostile) })
	for i, text := range got {
		if len(text) > calls.MaxLength+len("…") {
			t.Errorf("call %d has %d bytes", i, len(text))
		}
		if strings.Contains(text, "'password': 'x'") {
			t.Errorf("call %d shows a secret", i)
		}
	}
}
