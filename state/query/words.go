package query

import (
	"slices"
	"strings"
)

// Words returns the texts that a query looks for in the texts of tasks, in the order of its one spelling. Of a pattern, that is
// its longest part without *. What is negated is not looked for.
func (q Query) Words() []string { return words(nil, q.Expr()) }

func words(list []string, e Expr) []string {
	switch e := e.(type) {
	case And:
		for _, x := range e {
			list = words(list, x)
		}
	case Or:
		for _, x := range e {
			list = words(list, x)
		}
	case Term:
		if e.Field.Type() != Text {
			break
		}
		for _, v := range e.Values {
			longest := v.Text
			if v.Match == Pattern {
				longest = slices.MaxFunc(strings.Split(v.Text, "*"), func(a, b string) int { return len(a) - len(b) })
			}
			if longest != "" && !slices.Contains(list, longest) {
				list = append(list, longest)
			}
		}
	}
	return list
}
