package templates_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func TestRowsShowWhatWasFound(t *testing.T) {
	t.Parallel()
	long := "(" + strings.Repeat("'padding', ", 100) + "'Order 41834',)"
	tests := map[string]struct {
		task  state.Task
		words []string
		want  string // [ and ] around what is marked, | between texts
	}{
		"at the start":     {state.Task{Args: new("(41834,)")}, []string{"41834"}, "([41834],)"},
		"far behind":       {state.Task{Args: &long}, []string{"order 41834"}, "…, 'padding', 'padding', 'padding', '[Order 41834]',)"},
		"the first word":   {state.Task{Args: new("(1, 2)")}, []string{"2", "1"}, "([1], 2)"},
		"not there":        {state.Task{Args: new("(1,)")}, []string{"x"}, "(1,)"},
		"beside a failure": {state.Task{Args: new("(7,)"), State: state.Failure, Exception: new("KeyError('k')")}, []string{"7"}, "([7],)|KeyError('k')"},
		"in the exception": {state.Task{Args: new("(7,)"), State: state.Retry, Exception: new("KeyError('k')")}, []string{"keyerror"}, "(7,)|[KeyError]('k')"},
		"in the result":    {state.Task{Args: new("(7,)"), State: state.Success, Result: new("'paid'")}, []string{"paid"}, "(7,)|result|'[paid]'"},
		"in a past error":  {state.Task{Args: new("(7,)"), State: state.Success, Exception: new("KeyError('k')")}, []string{"key"}, "(7,)|exception|[Key]Error('k')"},
		"other letters":    {state.Task{Args: new("('İ Ärger',)")}, []string{"Ärger"}, "('İ [Ärger]',)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.task.ID = "a"
			row := recorded(t, templates.Tasks{Tasks: []state.Task{tc.task}, Table: templates.Table{Words: tc.words}}).Lists[0].Rows[0].HTML
			m := regexp.MustCompile(`(?s)<span class="call">(.*?)</span></td>`).FindStringSubmatch(row)
			if m == nil {
				t.Fatalf("no call in %s", row)
			}
			got := strings.NewReplacer("<mark>", "[", "</mark>", "]", "</code>", "|", "</span>", "|").Replace(m[1])
			got = html.UnescapeString(strings.Trim(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(got, ""), "|"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}
