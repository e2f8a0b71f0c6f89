package query

import (
	"strconv"
	"strings"
	"time"
)

// day is 24 hours: durations know no calendar.
const day = 24 * time.Hour

// maxDuration keeps sums with the time of day within an int64.
const maxDuration = 100_000 * day

// unit is a unit of durations.
type unit struct {
	name string
	size time.Duration
}

// units are those that durations are written in. One comes before those that its name begins with.
var units = [...]unit{ //nolint:gochecknoglobals // a constant table
	{"us", time.Microsecond},
	{"µs", time.Microsecond},
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"m", time.Minute},
	{"h", time.Hour},
	{"d", day},
	{"w", 7 * day},
}

// parseDuration reads a duration such as 150ms, 1.5s or 2d12h in µs. Only 0 needs no unit.
func parseDuration(s string) (int64, bool) {
	negative := strings.HasPrefix(s, "-")
	if s = s[sign(s):]; s == "0" {
		return 0, true
	}
	total := time.Duration(0)
	for first := true; first || s != ""; first = false {
		digits := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if digits <= 0 {
			return 0, false
		}
		amount, rest := s[:digits], s[digits:]
		var size time.Duration
		size, s = cutUnit(rest)
		n, ok := times(amount, size)
		if !ok || n > maxDuration-total {
			return 0, false
		}
		total += n
	}
	if negative {
		total = -total
	}
	return total.Microseconds(), true
}

// sign is the length of a sign before a number.
func sign(s string) int {
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		return 1
	}
	return 0
}

// cutUnit returns the size of the unit that s begins with, 0 if there is none, and what follows it.
func cutUnit(s string) (time.Duration, string) {
	for _, u := range units {
		if rest, ok := strings.CutPrefix(s, u.name); ok {
			return u.size, rest
		}
	}
	return 0, s
}

// times multiplies a decimal number with a unit, exactly: what is finer than a µs is refused.
func times(amount string, size time.Duration) (time.Duration, bool) {
	whole, fraction, _ := strings.Cut(amount, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || size == 0 || n > int64(maxDuration/size) {
		return 0, false
	}
	total := time.Duration(n) * size
	for _, digit := range []byte(strings.TrimRight(fraction, "0")) {
		if digit < '0' || digit > '9' || size%(10*time.Microsecond) != 0 {
			return 0, false
		}
		size /= 10
		total += time.Duration(digit-'0') * size
	}
	return total, true
}

// formatDuration writes µs such that parseDuration reads the same.
func formatDuration(micros int64) string {
	if micros == 0 {
		return "0"
	}
	var b strings.Builder
	if micros < 0 {
		b.WriteByte('-')
		micros = -micros
	}
	left := time.Duration(micros) * time.Microsecond
	for _, u := range [...]unit{{"d", day}, {"h", time.Hour}, {"m", time.Minute}} {
		if n := left / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			left -= n * u.size
		}
	}
	for _, u := range [...]unit{{"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if left >= u.size {
			b.WriteString(strconv.FormatFloat(float64(left)/float64(u.size), 'f', -1, 64) + u.name)
			break
		}
	}
	return b.String()
}

// instant is a time as it was written: all of the unit that it names.
type instant struct {
	first, last int64 // µs, inclusive
	date        bool  // a day, without a time of day
}

// layouts are the ways to write a time, with the time that each stands for. Any may end in a zone, and UTC
// is meant without one.
var layouts = [...]struct { //nolint:gochecknoglobals // a constant table
	layout string
	unit   time.Duration
}{
	{time.DateOnly, day},
	{"2006-01-02T15", time.Hour},
	{"2006-01-02T15:04", time.Minute},
	{"2006-01-02T15:04:05", time.Second},
}

// parseInstant reads a time in RFC 3339, of which less than all may be given.
func parseInstant(s string) (instant, bool) {
	for _, l := range layouts {
		for _, layout := range [...]string{l.layout, l.layout + "Z07:00"} {
			at, err := time.Parse(layout, s)
			if err != nil {
				continue
			}
			size := l.unit
			if strings.Contains(s, ".") {
				size = time.Microsecond
			}
			first, last := at.UTC(), at.UTC().Add(size)
			if first.Year() < 1 || last.Year() > 9998 {
				return instant{}, false
			}
			return instant{first.UnixMicro(), last.UnixMicro() - 1, l.unit == day}, true
		}
	}
	return instant{}, false
}

const microsPerDay = int64(day / time.Microsecond)

// formatInstant writes a time such that parseInstant reads the same as its first µs.
func formatInstant(micros int64) string {
	at := time.UnixMicro(micros).UTC()
	if at.Second() == 0 && at.Nanosecond() == 0 {
		return at.Format("2006-01-02T15:04Z")
	}
	return at.Format("2006-01-02T15:04:05.999999Z")
}

func formatDate(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.DateOnly) }
