package web

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// crossOrigin detects requests that pages of other sites make in a visitor's browser. Only links may come from there: a
// request of such a page would cost as much as the visitor's own, and whether it succeeds would reveal what exists.
type crossOrigin struct{ protection *http.CrossOriginProtection }

func newCrossOrigin(trusted []string) (crossOrigin, error) {
	f := crossOrigin{http.NewCrossOriginProtection()}
	for _, origin := range trusted {
		if err := f.protection.AddTrustedOrigin(origin); err != nil {
			return f, fmt.Errorf("the origin %q is not of the form https://host: %w", origin, err)
		}
	}
	return f, nil
}

// refuses reports whether r is such a request. Those of other clients than browsers, and of old ones, pass if they only
// read.
func (f crossOrigin) refuses(r *http.Request) bool {
	if downgraded(r) {
		return true
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if r.Header.Get("Sec-Fetch-Site") == "" || navigation(r.Header) {
			return false
		}
	}
	changing := *r
	changing.Method = http.MethodPost // the protection lets any other read
	return f.protection.Check(&changing) != nil
}

// navigation reports whether a browser is about to show the response as a page of its own.
func navigation(h http.Header) bool {
	return h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" &&
		!strings.HasPrefix(h.Get("Sec-Purpose"), "prefetch")
}

// downgraded reports whether a page without TLS, which may have been modified in transit, requests a dashboard with TLS.
// Proxies that terminate TLS set X-Forwarded-Proto; a page cannot.
func downgraded(r *http.Request) bool {
	secure := r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
	return secure && strings.HasPrefix(strings.ToLower(r.Header.Get("Origin")), "http:")
}

// origins returns those of pages that a proxy shows under one of hosts, which are behind TLS. Other programs serve pages
// on loopback too, so its names are none.
func origins(hosts []string) []string {
	var list []string
	for _, h := range hosts {
		ip := net.ParseIP(h)
		if strings.EqualFold(h, "localhost") || ip != nil || strings.ContainsAny(h, `*?[]\/:`) {
			continue
		}
		list = append(list, "https://"+h)
	}
	return list
}
