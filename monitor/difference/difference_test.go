package difference_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/difference"
)

// written is a side of a row, with what differs in brackets.
func written(parts []difference.Part) string {
	if parts == nil {
		return "-"
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Differs {
			b.WriteString("«" + p.Text + "»")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestReprs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		first, second string
		rows          []string
		equal         int
	}{
		"equal":          {`(1, 'a')`, `(1, 'a')`, nil, 1},
		"number":         {`(1, 2)`, `(1, 3)`, []string{"args[1]: «2» | «3»"}, 1},
		"text by word":   {`('pay order 42 now',)`, `('pay order 43 now',)`, []string{"args[0]: 'pay order «42» now' | 'pay order «43» now'"}, 0},
		"in a dict":      {`({'user': {'id': 1, 'name': 'x'}},)`, `({'user': {'id': 2, 'name': 'x'}},)`, []string{"args[0].user.id: «1» | «2»"}, 1},
		"other order":    {`({'a': 1, 'b': 2},)`, `({'b': 2, 'a': 1},)`, nil, 2},
		"only the first": {`({'a': 1},)`, `({},)`, []string{"args[0].a: «1» | -"}, 0},
		"only other":     {`({},)`, `({'a b': 1},)`, []string{"args[0]['a b']: - | «1»"}, 0},
		"inserted":       {`([1, 2, 3],)`, `([0, 1, 2, 3],)`, []string{"args[0][0]: - | «0»"}, 3},
		"longer":         {`(1,)`, `(1, 2)`, []string{"args[1]: - | «2»"}, 1},
		"other kind":     {`([1],)`, `('1',)`, []string{"args[0]: «[1]» | «'1'»"}, 0},
		"types":          {`(1,)`, `('1',)`, []string{"args[0]: «1» | «'1'»"}, 0},
		"objects":        {`(Decimal('1.1'), <a>)`, `(Decimal('1.2'), <a>)`, []string{"args[0]: «Decimal('1.1')» | «Decimal('1.2')»"}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := difference.Reprs("args", tt.first, tt.second)
			var rows []string
			for _, r := range c.Rows {
				rows = append(rows, r.Path+": "+written(r.First)+" | "+written(r.Second))
			}
			if diff := cmp.Diff(tt.rows, rows); diff != "" || len(c.Equal) != tt.equal || !c.ByStructure || c.Differs() != (len(rows) > 0) {
				t.Errorf("rows (-want +got), %d equal, want %d:\n%s", len(c.Equal), tt.equal, diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsComparedByWords(t *testing.T) {
	t.Parallel()
	c := difference.Reprs("args", `(an order 42 of x)`, `(an order 43 of x)`)
	if c.ByStructure || written(c.First) != "(an order «42» of x)" || written(c.Second) != "(an order «43» of x)" || !c.Differs() {
		t.Errorf("got %v, %s, %s", c.ByStructure, written(c.First), written(c.Second))
	}
}

func TestComparisonsAreBounded(t *testing.T) {
	t.Parallel()
	list := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+", ", n), ", ") + "]"
	}
	c := difference.Reprs("args", list("1", 5_000), list("2", 5_000))
	if len(c.Rows) != difference.MaxRows || c.More != 5_000-difference.MaxRows {
		t.Errorf("%d rows and %d more", len(c.Rows), c.More)
	}
	for _, text := range []string{strings.Repeat("x ", 30_000), strings.Repeat("x", 60_000) + " "} {
		a, b := difference.Words(text+"one "+text, text+"two "+text)
		if n := len(written(a)) + len(written(b)); n > 4_000 || !strings.Contains(written(a), "«one»") {
			t.Errorf("%d bytes are shown: %s", n, written(a))
		}
	}
	a, _ := difference.Words(strings.Repeat("a ", 30_000), strings.Repeat("b ", 30_000))
	if n := len(written(a)); n > 3_000 {
		t.Errorf("%d bytes are shown of what differs", n)
	}
}
