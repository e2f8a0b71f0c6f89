package query

import (
	"strconv"
	"strings"
	"unicode"
)

// format writes a simplified expression such that Parse reads it back.
func format(e Expr) string {
	switch e := e.(type) {
	case And:
		return join(e, " ")
	case Or:
		return join(e, " OR ")
	case Not:
		return "-" + group(e.X)
	case Term:
		return formatTerm(e)
	default:
		return ""
	}
}

func join(all []Expr, by string) string {
	parts := make([]string, len(all))
	for i, e := range all {
		parts[i] = format(e)
		if _, ok := e.(Or); ok {
			parts[i] = group(e)
		}
	}
	return strings.Join(parts, by)
}

// group writes an expression in parentheses if it is more than one term.
func group(e Expr) string {
	switch e.(type) {
	case And, Or:
		return "(" + format(e) + ")"
	default:
		return format(e)
	}
}

func formatTerm(t Term) string {
	values := make([]string, len(t.Values))
	for i, v := range t.Values {
		values[i] = formatValue(t.Field, v)
	}
	list := strings.Join(values, ",")
	if t.Field == Any {
		return list
	}
	return t.Field.String() + ":" + list
}

func formatValue(f Field, v Value) string {
	switch {
	case v.Match == Range:
		return formatRange(f, v.Min, v.Max)
	case v.Match == Pattern:
		parts := strings.Split(v.Text, "*")
		for i, part := range parts {
			if part != "" {
				parts[i] = quoted(f, part)
			}
		}
		return strings.Join(parts, "*")
	case v.Match == Contains && f.Type() == Word:
		return "~" + quoted(f, v.Text)
	case f.Type() == Set && !f.Causal():
		return quoted(f, strings.ToLower(v.Text))
	default:
		return quoted(f, v.Text)
	}
}

// quoted returns text, in quotes where it would be read as something else without.
func quoted(f Field, text string) string {
	if plain(text) && (f != Any || !strings.Contains(text, ":") && text != "OR" && text != "AND" && text != "NOT") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// plain reports whether text means itself as a value without quotes.
func plain(text string) bool {
	if text == "" || strings.ContainsRune("~<>-/", rune(text[0])) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`"(),*`, r)
	})
}

func formatRange(f Field, low, high Bound) string {
	switch {
	case !low.Set && !high.Set:
		return "*"
	case !high.Set && low.Exclusive:
		return ">" + formatEnd(f, low, false)
	case !high.Set:
		return ">=" + formatEnd(f, low, true)
	case !low.Set && high.Exclusive:
		return "<" + formatEnd(f, high, true)
	case !low.Set:
		return "<=" + formatLast(f, high)
	}
	first, last := formatEnd(f, low, true), formatLast(f, high)
	if first == last && (f.Type() != Time || len(first) == len("2026-11-20")) {
		return first
	}
	return first + ".." + last
}

// formatEnd writes an end of a range. dates is whether the first µs of a day may be written as the day.
func formatEnd(f Field, b Bound, dates bool) string {
	switch {
	case f.Type() == Number:
		return strconv.FormatInt(b.N, 10)
	case f.Type() == Duration:
		return formatDuration(b.N)
	case b.Relative && b.N == 0:
		return "now"
	case b.Relative && b.N > 0:
		return "+" + formatDuration(b.N)
	case b.Relative:
		return formatDuration(b.N)
	case dates && b.N%microsPerDay == 0:
		return formatDate(b.N)
	default:
		return formatInstant(b.N)
	}
}

// formatLast writes the inclusive end of a range. The last µs of a day is written as the day.
func formatLast(f Field, b Bound) string {
	if f.Type() == Time && !b.Relative && (b.N+1)%microsPerDay == 0 {
		return formatDate(b.N)
	}
	return formatEnd(f, b, false)
}
