package deploys

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history"
)

// Bounds of a mark that is set.
const (
	MaxText = 100  // characters of its text, its service and its version, each
	MaxLink = 1000 // bytes
	ahead   = time.Minute
)

// Error says what is wrong with a mark.
type Error struct {
	Field   string // at, text, link, service or version
	Message string // without the field: "must be …"
}

// Error returns the message with the field.
func (e *Error) Error() string { return e.Field + " " + e.Message }

// Check returns a mark as it is to be stored. A zero time becomes now. The error is an *Error.
func Check(m history.Mark, now time.Time) (history.Mark, error) {
	for _, f := range []struct {
		name  string
		value *string
	}{{"text", &m.Text}, {"service", &m.Service}, {"version", &m.Version}} {
		*f.value = strings.Join(strings.FieldsFunc(*f.value, unicode.IsSpace), " ")
		if strings.ContainsFunc(*f.value, unicode.IsControl) || !utf8.ValidString(*f.value) || utf8.RuneCountInString(*f.value) > MaxText {
			return m, &Error{f.name, fmt.Sprintf("must be at most %d characters without control characters", MaxText)}
		}
	}
	if m.Text == "" {
		return m, &Error{"text", "must not be empty"}
	}
	if u, err := url.Parse(m.Link); m.Link != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(m.Link) > MaxLink) {
		return m, &Error{"link", fmt.Sprintf("must be a URL that begins with http:// or https://, of at most %d bytes", MaxLink)}
	}
	if m.At.IsZero() {
		m.At = now
	}
	if m.At.After(now.Add(ahead)) || m.At.Before(now.Add(-history.MarkRetention)) {
		return m, &Error{"at", "must be in the last 400 days"}
	}
	return m, nil
}
