// Package dial is what adapters of brokers share about connecting: trying several addresses in turn, dialling with or
// without TLS, and saying in a sentence why it failed and what to do about it. It knows no broker.
package dial

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

// First returns what use makes of the first of endpoints that it can be made of. Once ctx has ended, no other is tried.
// The error is that of each endpoint that was, as one.
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

// Failures are the errors of several addresses, told in one line.
type Errors []error //nolint:errname // several of them

func (f Errors) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is look at each of them.
func (f Errors) Unwrap() []error { return f }

// Explained tells an error in one sentence with a hint, and wraps what it is about.
type HintError struct { //nolint:errname // it explains one
	Message string
	Err     error
}

func (e *HintError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *HintError) Unwrap() error { return e.Err }

// Dial opens a socket, and shakes hands for TLS with host if it is to be secure.
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

// TLS says why a handshake failed and what to do about it, or nothing if err is about something else. server is the name
// that the certificate should have been for, if not the one in err, and instead what to use where a port does not speak TLS.
func TLSHint(err error, server, instead string) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "this port does not speak TLS; use " + instead
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the broker's certificate is signed by an unknown authority; name the file of its authority"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the broker's certificate is not for %q; use the name it is for, or set the TLS server name",
			cmp.Or(server, wrong.Host))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("the broker's certificate is not accepted (%v); renew it", errors.Unwrap(err))
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" { // crypto/tls's word for it
		return fmt.Sprintf("the broker ended the TLS handshake (%v); it may want a client certificate", alert.Err)
	}
	return ""
}
