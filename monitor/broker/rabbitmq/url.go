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
	tls            TLS
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

// parseURLs reads URLs separated by semicolons. Its errors hold no part of a URL that could be a
// password.
func parseURLs(urls string) ([]endpoint, error) {
	var endpoints []endpoint
	for u := range strings.SplitSeq(urls, ";") {
		if u = strings.TrimSpace(u); u == "" {
			continue
		}
		e, err := parseURL(u)
		if err != nil {
			return nil, err
		}
		endpoints = append(endpoints, e)
	}
	if len(endpoints) == 0 {
		return nil, errors.New("broker URL is empty: write it as amqp://user:password@host:5672/vhost")
	}
	return endpoints, nil
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
	e.vhost = cmp.Or(unescape(strings.TrimPrefix(path, "/")), "/")
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
	login, address := "", text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		login, address = text[:i], text[i+1:]
	}
	user, password, _ := strings.Cut(login, ":")
	e.user = cmp.Or(unescape(user), "guest")
	e.password = cmp.Or(unescape(password), "guest")
	u := url.URL{Host: address}
	e.host = cmp.Or(u.Hostname(), "localhost")
	if strings.Contains(e.host, ":") && !strings.HasPrefix(address, "[") { // a port that is no number
		return errURL
	}
	e.port = cmp.Or(u.Port(), "5672")
	if e.secure {
		e.port = cmp.Or(u.Port(), "5671")
	}
	if n, err := strconv.ParseUint(e.port, 10, 16); err != nil || n == 0 { // or a password, if the host is missing
		return errors.New("broker URL has a port outside 1 to 65535")
	}
	return nil
}

// unescape decodes s, or returns it as it is if it cannot be decoded.
func unescape(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// parseQuery reads the parts of a URL's query that matter here, under Kombu's names and those of
// RabbitMQ's own clients. Like Kombu, it takes ssl or any ssl_ name for a wish to use TLS.
func parseQuery(e *endpoint, raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return errURL
	}
	if wish, _ := strconv.ParseBool(q.Get("ssl")); wish {
		e.secure = true
	}
	for name := range q {
		e.secure = e.secure || strings.HasPrefix(name, "ssl_")
	}
	e.tls = TLS{
		CAFile:     cmp.Or(q.Get("ssl_ca_certs"), q.Get("cacertfile")),
		CertFile:   cmp.Or(q.Get("ssl_certfile"), q.Get("certfile")),
		KeyFile:    cmp.Or(q.Get("ssl_keyfile"), q.Get("keyfile")),
		ServerName: cmp.Or(q.Get("ssl_server_hostname"), q.Get("server_name_indication")),
	}
	switch reqs := cmp.Or(q.Get("ssl_cert_reqs"), q.Get("verify")); reqs {
	case "", "required", "CERT_REQUIRED", "optional", "CERT_OPTIONAL", "verify_peer":
	case "none", "CERT_NONE", "verify_none":
		e.tls.InsecureSkipVerify = true
	default:
		return fmt.Errorf("broker URL has ssl_cert_reqs %q: use required or none", reqs)
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
