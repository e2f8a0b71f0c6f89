// Package issue makes links that open a new issue in a tracker, filled in.
package issue

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
)

// Bounds, since servers take only so much of an address.
const (
	MaxTemplate = 2_000 // bytes
	maxValue    = 300   // bytes of every value but the body
	maxBody     = 2_000 // bytes
)

// Values replace the placeholders of their names in small letters.
type Values struct {
	Title, Body     string
	Name, Exception string // of the failed tasks
	URL             string // of the page about them
	Count           string
}

// Template is the address of a tracker's form with placeholders.
type Template struct {
	text string
	host string
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

func placeholders() []string {
	return []string{"{title}", "{body}", "{name}", "{exception}", "{url}", "{count}"}
}

// Parse accepts http and https addresses with placeholders behind the host.
func Parse(text string) (*Template, error) {
	if len(text) > MaxTemplate {
		return nil, fmt.Errorf("the template has more than %d bytes", MaxTemplate)
	}
	for _, name := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(placeholders(), name) {
			return nil, fmt.Errorf("%s is unknown; there are %s", name, strings.Join(placeholders(), ", "))
		}
	}
	u, err := url.Parse(placeholder.ReplaceAllString(text, "x"))
	switch {
	case err != nil:
		return nil, errors.New("the template is not an address, such as https://tracker.example/new?title={title}&body={body}")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the template must begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, errors.New("the template must not have a password or a name before the host")
	}
	host, err := url.Parse(text[:strings.IndexAny(text+"{", "{")])
	if err != nil || host.Host != u.Host {
		return nil, errors.New("the template has a placeholder within the host")
	}
	return &Template{text, u.Host}, nil
}

// Host is that of the tracker.
func (t *Template) Host() string { return t.host }

// URL returns the address for some values, escaped and cut to what servers take.
func (t *Template) URL(v Values) string {
	escape := func(text string, most int) string {
		return strings.ReplaceAll(url.QueryEscape(truncate.Text(text, most)), "+", "%20") // of use in paths too
	}
	return strings.NewReplacer(
		"{title}", escape(v.Title, maxValue), "{body}", escape(v.Body, maxBody), "{name}", escape(v.Name, maxValue),
		"{exception}", escape(v.Exception, maxValue), "{url}", escape(v.URL, maxValue), "{count}", escape(v.Count, maxValue),
	).Replace(t.text)
}
