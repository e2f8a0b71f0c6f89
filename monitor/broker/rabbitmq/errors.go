package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
)

// hints say what to do about the reply codes of AMQP.
type hints map[int]string

// stepError explains why the broker refused a step.
func stepError(step string, err error, known hints) error {
	refusal, ok := errors.AsType[*amqp091.Error](err)
	if !ok || known[refusal.Code] == "" {
		return fmt.Errorf("%s: %w", step, err)
	}
	return &dial.HintError{Message: step + ": " + reason(refusal) + "; " + known[refusal.Code], Err: err}
}

// reason is the broker's sentence without the name of its reply code.
func reason(e *amqp091.Error) string {
	if _, sentence, ok := strings.Cut(e.Reason, " - "); ok {
		return sentence
	}
	return e.Reason
}

// connectError explains why e cannot be used. If ctx has ended, whatever failed did so because of that.
func connectError(ctx context.Context, e endpoint, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	prefix := fmt.Sprintf("connect to %s: ", e)
	if why := explain(e, err); why != "" {
		return &dial.HintError{Message: prefix + why, Err: err}
	}
	return fmt.Errorf("%s%w", prefix, err)
}

// explain says what err means and what to do about it, or nothing if it does not know.
func explain(e endpoint, err error) string {
	if known, ok := errors.AsType[*dial.HintError](err); ok {
		return known.Message
	}
	if refusal, ok := errors.AsType[*amqp091.Error](err); ok {
		return explainRefusal(e, refusal)
	}
	if why := dial.TLSHint(err, cmp.Or(e.tls.ServerName, e.host), "the broker's TLS port, usually 5671, or amqp://"); why != "" {
		return why
	}
	lookup, ok := errors.AsType[*net.DNSError](err)
	switch {
	case ok:
		return fmt.Sprintf("host %q cannot be looked up (%s); check the name", e.host, lookup.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time; check the host and the port, and that no firewall is in between"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused; check the host and the port, and that RabbitMQ is running"
	case errors.Is(err, net.ErrClosed): // the library closed it when it read the end, and only then wrote
		return brokenOff(e, "EOF")
	}
	return ""
}

// explainRefusal explains what amqp091 says about a handshake. What the broker leaves unsaid, the
// library fills in: a socket closed after the login means a wrong password.
func explainRefusal(e endpoint, refusal *amqp091.Error) string {
	switch {
	case refusal.Code == amqp091.NotAllowed || refusal == amqp091.ErrVhost:
		return fmt.Sprintf("user %q may not use vhost %q (%s); check that the vhost exists and that the user "+
			"has permissions on it", e.user, e.vhost, reason(refusal))
	case refusal.Code == amqp091.AccessRefused:
		why := fmt.Sprintf("user %q or its password was refused; check both", e.user)
		if e.user == "guest" {
			why += ", and note that RabbitMQ lets guest in from its own machine only"
		}
		return why
	case refusal.Code == amqp091.FrameError || refusal == amqp091.ErrClosed: // whichever comes first
		return brokenOff(e, reason(refusal))
	}
	return ""
}

// brokenOff explains that the broker, or whatever is there, ended the connection before the login.
func brokenOff(e endpoint, how string) string {
	why := fmt.Sprintf("the handshake broke off (%s); check that the port is the one for AMQP", how)
	if e.secure {
		return why + ", and whether the broker wants a client certificate"
	}
	return why + ", and use amqps:// if it is the one for TLS"
}
