package redis

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// errURL does not say what is wrong where, since that could be a piece of the password.
var errURL = errors.New("broker URL cannot be read: write it as redis://user:password@host:6379/0, " +
	"with special characters in user and password percent-encoded")

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
	all, err := dial.SplitURLs(urls, parseURL)
	if err != nil {
		return nil, err
	}
	sentinels := 0
	for _, e := range all {
		if len(e.sentinels) > 0 {
			sentinels++
		}
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
	a, err := dial.ParseAuthority(authority)
	if errors.Is(err, dial.ErrURL) {
		return errURL
	}
	if err != nil {
		return err
	}
	e.user, e.password = a.User, a.Password
	e.address = net.JoinHostPort(cmp.Or(a.Host, "localhost"), cmp.Or(a.Port, port))
	return parseDB(e, path)
}

// parseSocket reads user:password@/path.
func parseSocket(e *endpoint, text, db string) error {
	a, path := dial.ParseLogin(text)
	e.user, e.password, e.address = a.User, a.Password, dial.Unescape(path)
	if !strings.HasPrefix(e.address, "/") {
		return errors.New("broker URL has no path of a socket: write it as redis+socket:///path/to/redis.sock")
	}
	return parseDB(e, db)
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

// parseQuery reads the parts of a query that are about TLS.
func parseQuery(e *endpoint, raw string) (url.Values, error) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errURL
	}
	e.tls, e.secure, err = dial.TLSQuery(q)
	e.tls.AnyName = strings.EqualFold(q.Get("ssl_check_hostname"), "false")
	return q, err
}
