package api

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Time is an instant in µs since 1970 UTC. In JSON it is RFC 3339 in UTC with six decimals. 0 means
// unknown and is null, as is what lies outside the years 0 to 9999.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000000Z"

// MarshalJSON returns the time as a JSON string, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	at := time.UnixMicro(int64(t)).UTC()
	if year := at.Year(); t == 0 || year < 0 || year > 9999 {
		return []byte("null"), nil
	}
	return at.AppendFormat(nil, `"`+timeLayout+`"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
	var at *time.Time
	if err := json.Unmarshal(b, &at); err != nil {
		return err
	}
	*t = 0
	if at != nil {
		*t = Time(at.UnixMicro())
	}
	return nil
}

// Schema describes the JSON form.
func (Time) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeString, Nullable: true, Format: "date-time",
		Examples: []any{"2026-11-21T00:49:15.467538Z"},
	}
}

func timeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// maxSafe is the largest integer that all JSON readers handle exactly.
const maxSafe = 1 << 53

// Int is an integer from an event. In JSON it is a number, or beyond ±2^53, where many readers would round it, a string.
type Int int64

// MarshalJSON returns the integer as a JSON number or string.
func (i Int) MarshalJSON() ([]byte, error) {
	b := strconv.AppendInt(make([]byte, 0, 24), int64(i), 10)
	if i >= -maxSafe && i <= maxSafe {
		return b, nil
	}
	return append(append([]byte{'"'}, b...), '"'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (i *Int) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	*i = Int(n)
	return err
}

// Schema describes the JSON form.
func (Int) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{
		{Type: huma.TypeInteger, Format: "int64"},
		{Type: huma.TypeString, Pattern: `^-?[0-9]+$`, Description: "Used beyond ±2^53."},
	}}
}

// integer converts n, keeping nil.
func integer(n *int64) *Int { return (*Int)(n) }

// positive returns n, nil if it is 0, for unknown.
func positive(n int64) *Int {
	if n == 0 {
		return nil
	}
	return new(Int(n))
}

// number returns f, nil if it is nil or has no JSON form.
func number(f *float64) *float64 {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return nil
	}
	return f
}

// isoTime returns a time that Celery sent as text in the form of Time, or the text if it is not ISO 8601. A time without
// a zone is UTC (celery/app/amqp.py).
func isoTime(s *string) *string {
	if s == nil {
		return nil
	}
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
	} {
		if t, err := time.Parse(layout, *s); err == nil {
			return new(t.UTC().Format(timeLayout))
		}
	}
	return s
}
