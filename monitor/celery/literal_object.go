package celery

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// object reads an object as Python's repr writes it. It reads nothing if it returns false.
func (l *literal) object() bool {
	name, rest, _ := strings.Cut(l.s, "(")
	inside, rest, closed := strings.Cut(rest, ")")
	if !closed {
		return false
	}
	var kind string
	var value any
	ok := false
	switch name {
	case "Decimal":
		kind = "decimal"
		value, ok = quotedText(inside, isDecimal)
	case "UUID":
		kind = "uuid"
		var text string
		text, ok = quotedText(inside, func(s string) bool { return len(s) == 36 && isHex(strings.ReplaceAll(s, "-", "")) })
		value = map[string]string{"hex": strings.ReplaceAll(text, "-", "")}
	case "datetime.date":
		kind = "date"
		value, ok = isoOf(inside, 3)
	case "datetime.datetime":
		kind = "datetime"
		value, ok = isoOf(inside, 5)
	}
	if !ok {
		return false
	}
	b, err := json.Marshal(map[string]any{"__type__": kind, "__value__": value})
	l.out, l.s = append(l.out, b...), rest
	return err == nil
}

// quotedText returns the text of a simple string literal that fits.
func quotedText(s string, fits func(string) bool) (string, bool) {
	text, quoted := strings.CutPrefix(s, "'")
	text, closed := strings.CutSuffix(text, "'")
	return text, quoted && closed && fits(text)
}

// isoOf returns a date without a time zone as Python's isoformat writes it, from the numbers of its repr: those after
// count may be missing, and the last is of µs.
func isoOf(repr string, count int) (string, bool) {
	var n [7]int
	parts := strings.Split(repr, ", ")
	if len(parts) < count || len(parts) > len(n) || count == 3 && len(parts) > count {
		return "", false
	}
	for i, part := range parts {
		if !isInteger(part) || strings.HasPrefix(part, "-") {
			return "", false
		}
		n[i], _ = strconv.Atoi(part) // at most six digits of a valid time, as compared below
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
	if n[0] < 1 || n[0] > 9999 || n[6] > 999_999 || at.Year() != n[0] || int(at.Month()) != n[1] || at.Day() != n[2] ||
		at.Hour() != n[3] || at.Minute() != n[4] || at.Second() != n[5] {
		return "", false
	}
	switch {
	case count == 3:
		return at.Format(time.DateOnly), true
	case n[6] != 0:
		return at.Format("2006-01-02T15:04:05.000000"), true
	}
	return at.Format("2006-01-02T15:04:05"), true
}
