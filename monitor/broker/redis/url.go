package redis

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

var (
	// errURL does not say what is wrong where, since that could be a piece of the password.
	errURL = errors.New("broker URL cannot be read: write it as redis://user:password@host:6379/0, " +
		"with special characters in user and password percent-encoded")
	errPort = errors.New("broker URL has a port outside 1 to 65535")
)

// endpoint is one place where Redis is.
type endpoint struct {
	network        string   // tcp, unix
	address        string   // host:port, or the path of a socket; of the master once it is known, with sentinels
	sentinels      []string // host:port of each
	user, password string
	db             int
	secure         bool // TLS
	tls            broker.TLS
}

// String is the URL with its password masked.
func (e endpoint) String() string {
	login := ""
	if e.user != "" || e.password != "" {
		login = url.PathEscape(e.user) + ":***@"
	}
	switch {
	case len(e.sentinels) > 0:
		return "sentinel://" + login + strings.Join(e.sentinels, ";sentinel://") + "/" + strconv.Itoa(e.db)
	case e.network == "unix":
		return "redis+socket://" + login + e.address + "?virtual_host=" + strconv.Itoa(e.db)
	case e.secure:
		return "rediss://" + login + e.address + "/" + strconv.Itoa(e.db)
	}
	return "redis://" + login + e.address + "/" + strconv.Itoa(e.db)
}

// parseURLs reads URLs separated by semicolons: one endpoint each, but a list of sentinels is one. Its errors hold
// no part of a URL that could be a password.
func parseURLs(urls string) ([]endpoint, error) {
	var all []endpoint
	sentinels := 0
	for u := range strings.SplitSeq(urls, ";") {
		if u = strings.TrimSpace(u); u == "" {
			continue
		}
		e, err := parseURL(u)
		if err != nil {
			return nil, err
		}
		if len(e.sentinels) > 0 {
			sentinels++
		}
		all = append(all, e)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("broker URL is empty: write it as redis://user:password@host:6379/0")
	case sentinels == 0:
		return all, nil
	case sentinels < len(all):
		return nil, errors.New("broker URL mixes sentinel:// with other schemes: list sentinels alone")
	}
	one := all[0] // whose path and login are the master's
	for _, e := range all[1:] {
		one.sentinels = append(one.sentinels, e.sentinels...)
	}
	return []endpoint{one}, nil
}

// parseURL reads a URL as Kombu does: the path is a number, and characters that should have been encoded stand for
// themselves.
func parseURL(text string) (endpoint, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, ":@") {
		return endpoint{}, errURL
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.ContainsAny(query, "@") { // a password with a question mark in it
		return endpoint{}, errURL
	}
	e := endpoint{network: "tcp"}
	q, err := parseQuery(&e, query)
	if err != nil {
		return endpoint{}, err
	}
	switch strings.ToLower(scheme) {
	case "redis":
		err = parseHost(&e, rest, "6379")
	case "rediss":
		e.secure = true
		err = parseHost(&e, rest, "6379")
	case "sentinel":
		err = parseHost(&e, rest, "26379")
		e.sentinels, e.address = []string{e.address}, ""
	case "redis+socket":
		e.network, e.secure = "unix", false
		err = parseSocket(&e, rest, q.Get("virtual_host"))
	default:
		err = fmt.Errorf("broker URL has scheme %q: use redis://, rediss://, redis+socket:// or sentinel://", scheme)
	}
	return e, err
}

// parseHost reads user:password@host:port/db, each of which may be missing.
func parseHost(e *endpoint, text, port string) error {
	text, fragment, _ := strings.Cut(text, "#")
	authority, path, _ := strings.Cut(text, "/")
	if strings.Contains(path+fragment, "@") { // a password with a slash or a hash in it
		return errURL
	}
	address := parseLogin(e, authority)
	u := url.URL{Host: address}
	host := cmp.Or(u.Hostname(), "localhost")
	if strings.Contains(host, ":") && !strings.HasPrefix(address, "[") { // a port that is no number
		return errURL
	}
	port = cmp.Or(u.Port(), port)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 { // or a password, if the host is missing
		return errPort
	}
	e.address = net.JoinHostPort(host, port)
	return parseDB(e, path)
}

// parseSocket reads user:password@/path.
func parseSocket(e *endpoint, text, db string) error {
	e.address = unescape(parseLogin(e, text))
	if !strings.HasPrefix(e.address, "/") {
		return errors.New("broker URL has no path of a socket: write it as redis+socket:///path/to/redis.sock")
	}
	return parseDB(e, db)
}

// parseLogin takes user:password@ off the front.
func parseLogin(e *endpoint, authority string) (rest string) {
	login, rest := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		login, rest = authority[:i], authority[i+1:]
	}
	user, password, _ := strings.Cut(login, ":")
	e.user, e.password = unescape(user), unescape(password)
	return rest
}

func parseDB(e *endpoint, text string) error {
	text = strings.Trim(text, "/")
	if text == "" {
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil { // which may be a piece of a password
		return errors.New("broker URL has a database that is no number: write it as redis://host:6379/0")
	}
	e.db = int(n)
	return nil
}

// unescape decodes s, or returns it as it is if it cannot be decoded.
func unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// parseQuery reads Kombu's names for TLS. Like Kombu, it takes any of them for a wish to use it.
func parseQuery(e *endpoint, raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errURL
	}
	for name := range q {
		e.secure = e.secure || strings.HasPrefix(name, "ssl_")
	}
	e.tls = broker.TLS{
		CAFile: q.Get("ssl_ca_certs"), CertFile: q.Get("ssl_certfile"), KeyFile: q.Get("ssl_keyfile"),
		AnyName: strings.EqualFold(q.Get("ssl_check_hostname"), "false"),
	}
	switch reqs := q.Get("ssl_cert_reqs"); strings.TrimPrefix(strings.ToLower(reqs), "cert_") {
	case "", "required", "optional":
	case "none":
		e.tls.InsecureSkipVerify = true
	default:
		return nil, fmt.Errorf("broker URL has ssl_cert_reqs %q: use required or none", reqs)
	}
	return q, nil
}
