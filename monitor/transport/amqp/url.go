package amqp

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

// errURL says nothing of what is wrong where, since the words of net/url quote the password.
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

// parseURL reads a URL as Kombu does: one slash divides host and vhost, and no vhost is "/".
func parseURL(text string) (endpoint, error) {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		return endpoint{}, errURL
	}
	u, err := url.Parse(text)
	if err != nil {
		return endpoint{}, errURL
	}
	switch u.Scheme {
	case "amqp", "amqps", "pyamqp":
	default:
		return endpoint{}, fmt.Errorf("broker URL has scheme %q: use amqp://, amqps:// or pyamqp://", scheme)
	}
	e := endpoint{
		user:      cmp.Or(u.User.Username(), "guest"),
		password:  "guest",
		host:      cmp.Or(u.Hostname(), "localhost"),
		vhost:     cmp.Or(strings.TrimPrefix(u.Path, "/"), "/"),
		heartbeat: defaultHeartbeat,
		secure:    u.Scheme == "amqps",
	}
	if p, _ := u.User.Password(); p != "" {
		e.password = p
	}
	if err := e.parseQuery(u.RawQuery); err != nil {
		return endpoint{}, err
	}
	e.port = cmp.Or(u.Port(), "5672")
	if e.secure {
		e.port = cmp.Or(u.Port(), "5671")
	}
	if n, err := strconv.ParseUint(e.port, 10, 16); err != nil || n == 0 {
		return endpoint{}, fmt.Errorf("broker URL has port %s: use one from 1 to 65535", e.port)
	}
	return e, nil
}

// parseQuery reads the parts of a URL's query that matter here, under Kombu's names and those of
// RabbitMQ's own clients. Like Kombu, it takes any ssl_ name for a wish to use TLS.
func (e *endpoint) parseQuery(raw string) error {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return errURL
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
