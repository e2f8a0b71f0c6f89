package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxHeaders bounds the headers of a request, each of which has at most 8 KiB.
const maxHeaders, maxHeader = 50, 8 << 10

// Headers returns the headers of each request: those of a list like that in OTEL_EXPORTER_OTLP_HEADERS, NAME=VALUE separated by
// commas with values that are percent-encoded, and single ones, NAME=VALUE as it is, which replace those of the list. No error
// holds a value.
func Headers(list string, single []string) (http.Header, error) {
	h := make(http.Header)
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, encoded, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !ok || err != nil {
			return nil, errors.New("a header is not NAME=VALUE with a percent-encoded value")
		}
		if err := addHeader(h, strings.TrimSpace(name), value); err != nil {
			return nil, err
		}
	}
	for _, part := range single {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, errors.New("a header is not NAME=VALUE")
		}
		if err := addHeader(h, strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return nil, err
		}
	}
	if len(h) > maxHeaders {
		return nil, fmt.Errorf("more than %d headers", maxHeaders)
	}
	return h, nil
}

func addHeader(h http.Header, name, value string) error {
	own := []string{"Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Trailer", "Transfer-Encoding", "Upgrade"}
	switch canonical := http.CanonicalHeaderKey(name); {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return !tokenChar(c) }):
		return errors.New("the name of a header has other characters than letters, digits and !#$%&'*+-.^_`|~")
	case slices.Contains(own, canonical):
		return fmt.Errorf("the header %s is set by Umbel itself", canonical)
	case len(name)+len(value) > maxHeader:
		return fmt.Errorf("the header %s is longer than 8 KiB", canonical)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return fmt.Errorf("the value of the header %s has control characters", canonical)
	default:
		h.Set(name, value)
		return nil
	}
}

// tokenChar reports whether names of headers may have a character (RFC 9110, section 5.6.2).
func tokenChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c < 0x7f && strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
