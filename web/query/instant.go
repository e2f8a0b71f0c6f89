package query

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// instantLayout is the one spelling of an instant: RFC 3339 in UTC with microseconds, to which receipts are unique.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// FormatInstant returns the address of an instant.
func FormatInstant(at time.Time) string { return at.UTC().Format(instantLayout) }

var unixSeconds = regexp.MustCompile(`^[0-9]{9,10}(\.[0-9]{1,6})?$`)

// ParseInstant reads an instant: a time as RFC 3339 has it, the seconds since 1970 UTC, or now. It is cut to microseconds.
func ParseInstant(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now.Truncate(time.Microsecond).UTC(), nil
	}
	if unixSeconds.MatchString(text) {
		whole, fraction, _ := strings.Cut(text, ".")
		micros, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
		return time.UnixMicro(micros).UTC(), err //nolint:wrapcheck // it is a number
	}
	at, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "+", 1)) // a + that was not escaped
	if err != nil || at.Year() < 1971 || at.Year() > 2100 {
		return time.Time{}, errors.New("at must be a time such as 2026-09-21T14:03:22.120Z")
	}
	return at.Truncate(time.Microsecond).UTC(), nil
}
