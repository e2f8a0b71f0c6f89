package auth

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// cookieName adds the port, since browsers send cookies to all ports of a host, where another Umbel may be, and the prefix that
// makes them refuse cookies which other hosts, or pages without TLS, set in our name.
func (s *Service) cookieName(r *http.Request, name string) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			name += "_" + strconv.FormatUint(n, 10)
		}
	}
	switch {
	case !s.secure(r):
		return name
	case s.o.Prefix == "":
		return "__Host-" + name
	}
	return "__Secure-" + name // __Host- is for the path / only
}

// setCookie sets a cookie that no script can read, for age; 0 removes it.
func (s *Service) setCookie(w http.ResponseWriter, r *http.Request, name, value string, age time.Duration) {
	c := &http.Cookie{ //nolint:gosec // Secure where browsers come by TLS; loopback has none
		Name: s.cookieName(r, name), Value: value, Path: s.o.Prefix + "/", MaxAge: int(age / time.Second),
		HttpOnly: true, Secure: s.secure(r), SameSite: http.SameSiteLaxMode,
	}
	if age <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// cookie returns the value of a cookie, empty if there is none or more than one: somebody else has set one then.
func (s *Service) cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(s.cookieName(r, name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}
