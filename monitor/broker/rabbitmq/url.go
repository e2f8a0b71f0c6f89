package rabbitmq

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

const defaultHeartbeat = 10 * time.Second

// errURL does not say what is wrong where, since that could be a piece of the password.
var errURL = errors.New("broker URL cannot be read: write it as amqp://user:password@host:5672/vhost, " +
	"with special characters in user, password and vhost percent-encoded")

// endpoint is one address of the broker.
type endpoint struct {
	user, password string
	host, port     string
	vhost          string
	heartbeat      time.Duration // 0 leaves it to the broker
	secure         bool          // TLS
	tls            broker.TLS
}

// address is what a dialer wants.
func (e endpoint) address() string { return net.JoinHostPort(e.host, e.port) }

// String is the URL with its password masked.
func (e endpoint) String() string {
	scheme, path := "amqp", "/"
	if e.secure {
		scheme = "amqps"
	}
	if e.vhost != "/" {
		path += url.PathEscape(e.vhost)
	}
	return scheme + "://" + url.PathEscape(e.user) + ":***@" + e.address() + path
}

// parseURLs reads URLs separated by semicolons. Its errors contain no part of a URL that could be a password.
func parseURLs(urls string) ([]endpoint, error) {
	endpoints, err := dial.SplitURLs(urls, parseURL)
	if err == nil && len(endpoints) == 0 {
		err = errors.New("broker URL is empty: write it as amqp://user:password@host:5672/vhost")
	}
	return endpoints, err
}

// parseURL reads a URL as Kombu does, which is more lenient than net/url: one slash divides host and
// vhost, no vhost is "/", and characters that should have been encoded stand for themselves.
func parseURL(text string) (endpoint, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, ":@") {
		return endpoint{}, errURL
	}
	e := endpoint{heartbeat: defaultHeartbeat}
	switch strings.ToLower(scheme) {
	case "amqp", "pyamqp":
	case "amqps":
		e.secure = true
	default:
		return endpoint{}, fmt.Errorf("broker URL has scheme %q: use amqp://, amqps:// or pyamqp://", scheme)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.Contains(tail, "@") { // a password with a slash in it, which must not pass for a vhost
		return endpoint{}, errURL
	}
	tail, _, _ = strings.Cut(tail, "#")
	path, query, _ := strings.Cut(tail, "?")
	e.vhost = cmp.Or(dial.Unescape(strings.TrimPrefix(path, "/")), "/")
	if err := parseQuery(&e, query); err != nil {
		return endpoint{}, err
	}
	if err := parseAuthority(&e, authority); err != nil {
		return endpoint{}, err
	}
	return e, nil
}

// parseAuthority reads user:password@host:port, each of which may be missing.
func parseAuthority(e *endpoint, text string) error {
	a, err := dial.ParseAuthority(text)
	if errors.Is(err, dial.ErrURL) {
		return errURL
	}
	if err != nil {
		return err
	}
	port := "5672"
	if e.secure {
		port = "5671"
	}
	e.user, e.password = cmp.Or(a.User, "guest"), cmp.Or(a.Password, "guest")
	e.host, e.port = cmp.Or(a.Host, "localhost"), cmp.Or(a.Port, port)
	return nil
}

// parseQuery reads the parts of a URL's query that matter here, under Kombu's names and those of
// RabbitMQ's own clients. Like Kombu, it takes ssl or any ssl_ name as a request for TLS.
func parseQuery(e *endpoint, raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return errURL
	}
	if e.tls, e.secure, err = tlsQuery(q, e.secure); err != nil {
		return err
	}
	if text := q.Get("heartbeat"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return fmt.Errorf("broker URL has heartbeat %q: use whole seconds from 0 to 65535", text)
		}
		e.heartbeat = time.Duration(seconds) * time.Second
	}
	return nil
}

// tlsQuery reads the parts of a query that are about TLS.
func tlsQuery(q url.Values, secure bool) (broker.TLS, bool, error) {
	wanted, _ := strconv.ParseBool(q.Get("ssl"))
	t, named, err := dial.TLSQuery(q)
	t.CAFile, t.CertFile = cmp.Or(t.CAFile, q.Get("cacertfile")), cmp.Or(t.CertFile, q.Get("certfile"))
	t.KeyFile = cmp.Or(t.KeyFile, q.Get("keyfile"))
	t.AnyName = strings.EqualFold(q.Get("ssl_check_hostname"), "false")
	t.ServerName = cmp.Or(q.Get("ssl_server_hostname"), q.Get("server_name_indication"))
	if err == nil && q.Get("ssl_cert_reqs") == "" {
		t.InsecureSkipVerify, err = dial.SkipVerify(q.Get("verify"))
	}
	return t, secure || wanted || named, err
}
