package dial

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

// Errors of URLs. They contain no part of the URL, which could be a piece of the password.
var (
	ErrURL  = errors.New("malformed URL")
	ErrPort = errors.New("broker URL has a port outside 1 to 65535")
)

// Authority is the part of a URL before the path. Missing parts are empty.
type Authority struct {
	User, Password string
	Host, Port     string
}

// ParseAuthority parses user:password@host:port as Kombu does, which is more lenient than net/url: characters that
// should have been encoded represent themselves. Its errors are ErrURL and ErrPort.
func ParseAuthority(text string) (Authority, error) {
	a, address := ParseLogin(text)
	u := url.URL{Host: address}
	a.Host, a.Port = u.Hostname(), u.Port()
	if strings.Contains(a.Host, ":") && !strings.HasPrefix(address, "[") { // a port that is not a number
		return Authority{}, ErrURL
	}
	if n, err := strconv.ParseUint(a.Port, 10, 16); a.Port != "" && (err != nil || n == 0) { // or a password, if the host is missing
		return Authority{}, ErrPort
	}
	return a, nil
}

// ParseLogin parses user:password@ and returns what follows it.
func ParseLogin(text string) (a Authority, rest string) {
	login, rest := "", text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		login, rest = text[:i], text[i+1:]
	}
	user, password, _ := strings.Cut(login, ":")
	return Authority{User: Unescape(user), Password: Unescape(password)}, rest
}

// Unescape decodes s, or returns it unchanged if it cannot be decoded.
func Unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// SplitURLs parses URLs separated by semicolons.
func SplitURLs[E any](urls string, parse func(string) (E, error)) ([]E, error) {
	var all []E
	for u := range strings.SplitSeq(urls, ";") {
		if u = strings.TrimSpace(u); u == "" {
			continue
		}
		e, err := parse(u)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// TLSQuery reads Kombu's names for TLS in a URL's query. Like Kombu, it takes any of them as a request for TLS.
func TLSQuery(q url.Values) (t broker.TLS, secure bool, err error) {
	for name := range q {
		secure = secure || strings.HasPrefix(name, "ssl_")
	}
	t = broker.TLS{CAFile: q.Get("ssl_ca_certs"), CertFile: q.Get("ssl_certfile"), KeyFile: q.Get("ssl_keyfile")}
	t.InsecureSkipVerify, err = SkipVerify(q.Get("ssl_cert_reqs"))
	return t, secure, err
}

// SkipVerify reports whether ssl_cert_reqs of Kombu, or verify of RabbitMQ's clients, asks to accept any certificate.
func SkipVerify(reqs string) (bool, error) {
	word := strings.ToLower(reqs)
	switch strings.TrimPrefix(strings.TrimPrefix(word, "cert_"), "verify_") {
	case "", "required", "optional", "peer":
		return false, nil
	case "none":
		return true, nil
	}
	return false, fmt.Errorf("broker URL has ssl_cert_reqs %q: use required or none", reqs)
}
