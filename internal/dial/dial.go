// Package dial connects to brokers: it tries several addresses in turn, dials with or without TLS, and turns
// errors into a sentence with a hint. It knows no specific broker.
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/umbelhq/umbel/monitor/broker"
)

// FirstOf calls use with each endpoint until one succeeds, and returns that result. It stops when ctx ends. The
// error joins those of all endpoints tried.
func FirstOf[E, T any](ctx context.Context, endpoints []E, use func(context.Context, E) (T, error)) (T, error) {
	var failed Errors
	var none T
	for _, e := range endpoints {
		v, err := use(ctx, e)
		if err == nil {
			return v, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) == 1 {
		return none, failed[0]
	}
	return none, failed
}

// Errors are the errors of several addresses, joined in one line.
type Errors []error

func (f Errors) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is look at each of them.
func (f Errors) Unwrap() []error { return f }

// HintError is an error in one sentence with a hint, and its cause.
type HintError struct {
	Message string
	Err     error
}

func (e *HintError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *HintError) Unwrap() error { return e.Err }

// Conn opens a connection, with a TLS handshake with host if secure.
func Conn(ctx context.Context, network, address string, secure bool, options broker.TLS, host string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil || !secure {
		return conn, err
	}
	config, err := options.Config(host)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// ConnectError explains why an endpoint cannot be used, whose String masks the password: explain returns what an error
// means and what to do about it, or nothing if it does not know. If ctx has ended, whatever failed did so because of
// that.
func ConnectError(ctx context.Context, endpoint fmt.Stringer, err error, explain func(error) string) error {
	if ended := ctx.Err(); ended != nil {
		err = ended
	} else if errors.Is(err, os.ErrDeadlineExceeded) { // of the socket, which has the same
		err = context.DeadlineExceeded
	}
	prefix := fmt.Sprintf("connect to %s: ", endpoint)
	if _, several := errors.AsType[Errors](err); several {
		return fmt.Errorf("%s%w", prefix, err)
	}
	if known, ok := errors.AsType[*HintError](err); ok {
		return &HintError{Message: prefix + known.Message, Err: err}
	}
	if hint := explain(err); hint != "" {
		return &HintError{Message: prefix + hint, Err: err}
	}
	return fmt.Errorf("%s%w", prefix, err)
}

// Hint says why a connection to a server, such as Redis, failed, and what to do about it, or returns an empty string if
// err has a cause that the network does not explain. name is the expected one in the certificate, if it is not in err,
// and instead what to use where a port does not support TLS.
func Hint(err error, server, name, instead string) string {
	if hint := tlsHint(err, name, instead); hint != "" {
		return hint
	}
	lookup, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok:
		return fmt.Sprintf("host %q cannot be looked up (%s); check the name", lookup.Name, lookup.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time; check the host and the port, and that no firewall is in between"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused; check the host and the port, and that " + server + " is running"
	}
	return ""
}

// tlsHint is Hint for a handshake that failed.
func tlsHint(err error, name, instead string) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "this port does not speak TLS; use " + instead
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the broker's certificate is signed by an unknown authority; name the file of its authority"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the broker's certificate is not for %q; use the name it is for, or set the TLS server name",
			cmp.Or(name, wrong.Host))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("the broker's certificate is not accepted (%v); renew it", errors.Unwrap(err))
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // set by crypto/tls for alerts of the peer
		return fmt.Sprintf("the broker ended the TLS handshake (%v); it may want a client certificate", alert.Err)
	}
	return ""
}
