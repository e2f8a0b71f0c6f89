package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
)

// hints say what to do about the reply codes of AMQP.
type hints map[int]string

// stepError explains why the broker refused a step, if err is not nil.
func stepError(step string, err error, known hints) error {
	if err == nil {
		return nil
	}
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

// connectError explains why e cannot be used.
func connectError(ctx context.Context, e endpoint, err error) error {
	return dial.ConnectError(ctx, e, err, func(err error) string { return explain(e, err) })
}

// explain says what err means and what to do about it, or nothing if it does not know.
func explain(e endpoint, err error) string {
	if refusal, ok := errors.AsType[*amqp091.Error](err); ok {
		return explainRefusal(e, refusal)
	}
	name := cmp.Or(e.tls.ServerName, e.host)
	if why := dial.Hint(err, "RabbitMQ", name, "the broker's TLS port, usually 5671, or amqp://"); why != "" {
		return why
	}
	if errors.Is(err, net.ErrClosed) { // the library closed it when it read the end, and only then wrote
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
