package celery

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// unwrappable checks an object that has exactly the keys __type__ and __value__: Kombu from 5.3 on turns it into another
// value, and a worker loses the message if it cannot (kombu/utils/json.py, object_hook).
func unwrappable(n node, at *place) error {
	if !wraps(n) {
		return nil
	}
	member := func(name string) string { return join(at.String(), name) }
	name, value := n.items[slices.Index(n.keys, "__type__")], n.items[slices.Index(n.keys, "__value__")]
	if name.kind != isText {
		return &MessageError{Path: member("__type__"), Message: "must be the name of a type"}
	}
	var ok bool
	switch name.text {
	case "bytes":
		ok = value.kind == isText
	case "base64":
		_, err := base64.StdEncoding.DecodeString(value.text)
		ok = value.kind == isText && err == nil
	case "datetime", "date":
		ok = value.kind == isText && isoDate(value.text)
	case "time":
		ok = value.kind == isText && isoTime(value.text)
	case "decimal":
		ok = value.kind == isText && isDecimal(value.text)
	case "uuid":
		ok = value.kind == isObject && len(value.keys) == 1 && value.keys[0] == "hex" &&
			value.items[0].kind == isText && isHex(value.items[0].text)
	default:
		message := "must be bytes, base64, datetime, date, time, decimal or uuid: Kombu reads no other"
		return &MessageError{Path: member("__type__"), Message: message}
	}
	if !ok {
		return &MessageError{Path: member("__value__"), Message: "must be a " + name.text + " as Kombu writes it"}
	}
	return nil
}

// wraps reports whether n is an object that Kombu turns into another value.
func wraps(n node) bool {
	return len(n.keys) == 2 && slices.Contains(n.keys, "__type__") && slices.Contains(n.keys, "__value__")
}

// isoDate reports whether s is what datetime.isoformat writes, or date.isoformat.
func isoDate(s string) bool {
	day, rest, timed := strings.Cut(s, "T")
	if _, err := time.Parse(time.DateOnly, day); err != nil || strings.HasPrefix(day, "0000") {
		return false
	}
	return !timed || isoTime(rest)
}

// isoTime reports whether s is what time.isoformat writes.
func isoTime(s string) bool {
	clock, zone := s, ""
	if n := strings.IndexAny(s, "+-"); n >= 0 {
		clock, zone = s[:n], s[n+1:]
		_, short := time.Parse("15:04", zone)
		_, long := time.Parse("15:04:05", zone)
		if short != nil && long != nil {
			return false
		}
	}
	layouts := []string{"15:04", "15:04:05", "15:04:05.000", "15:04:05.000000"}
	return slices.ContainsFunc(layouts, func(layout string) bool {
		_, err := time.Parse(layout, clock)
		return err == nil && len(clock) == len(layout)
	})
}

// isDecimal reports whether s is what str of a decimal.Decimal writes.
func isDecimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(s, "s"), "NaN"); ok {
		return rest == "" || isDigits(rest)
	}
	if s == "Infinity" {
		return true
	}
	mantissa, exponent, scientific := strings.Cut(s, "E")
	whole, fraction, fractional := strings.Cut(mantissa, ".")
	return isDigits(whole) && (!fractional || isDigits(fraction)) &&
		(!scientific || len(exponent) <= 10 && strings.Trim(exponent[:min(1, len(exponent))], "+-") == "" &&
			isDigits(exponent[min(1, len(exponent)):]))
}

// isDigits reports whether s is made of digits, of one at least.
func isDigits(s string) bool {
	return s != "" && len(s) <= maxDigits && strings.Trim(s, "0123456789") == ""
}

// isHex reports whether s is the hex of a UUID.
func isHex(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
