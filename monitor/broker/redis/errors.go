package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// code is the first word of an error reply of Redis, empty for other errors.
func code(err error) string {
	refusal, ok := errors.AsType[redis.Error](err)
	if !ok || errors.Is(err, redis.Nil) {
		return ""
	}
	word, _, _ := strings.Cut(refusal.Error(), " ")
	return word
}

// isRefusal reports whether err is an error reply of Redis.
func isRefusal(err error) bool { return code(err) != "" }

// connectError explains why e cannot be used.
func connectError(ctx context.Context, e endpoint, err error) error {
	return dial.ConnectError(ctx, e, err, func(err error) string { return explain(e, err) })
}

// explain says what err means and what to do about it, or nothing if it does not know.
func explain(e endpoint, err error) string {
	if why := explainRefusal(e, err); why != "" {
		return why
	}
	if why := dial.Hint(err, "Redis", e.tls.ServerName, "the broker's TLS port, or redis://"); why != "" {
		return why
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return "there is no such socket; check its path, and that Redis is running"
	case errors.Is(err, syscall.EACCES):
		return "the socket may not be opened; check its permissions"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		why := "the handshake broke off; check that the port is the one for Redis"
		if e.secure {
			return why + ", and whether it wants a client certificate"
		}
		return why + ", and use rediss:// if it is the one for TLS"
	case strings.Contains(err.Error(), "invalid reply"), strings.Contains(err.Error(), "can't parse"):
		return "what answers does not speak the protocol of Redis; check the host and the port"
	}
	return ""
}

// explainRefusal explains an error reply of Redis.
func explainRefusal(e endpoint, err error) string {
	word := code(err)
	user := "user " + fmt.Sprintf("%q", cmp.Or(e.user, "default"))
	switch {
	case word == "":
		return ""
	case word == "WRONGPASS", strings.Contains(err.Error(), "invalid password"):
		return user + " or its password was refused; check both"
	case strings.Contains(err.Error(), "without any password configured"):
		return "the broker has no password for " + user + "; leave it out of the URL"
	case word == "NOAUTH":
		return "the broker wants a password; write it into the URL as redis://user:password@host or redis://:password@host"
	case word == "NOPERM":
		return user + " may not do that (" + refusal(err) + "); give it the permission"
	case word == "MOVED", word == "CROSSSLOT", word == "CLUSTERDOWN":
		return "the broker is a Redis Cluster, which Celery does not work with"
	case word == "DENIED":
		return "the broker is in protected mode; give it a password, or have it listen where Umbel runs"
	case strings.Contains(err.Error(), "DB index is out of range"):
		return fmt.Sprintf("the broker has no database %d; check the number at the end of the URL", e.db)
	}
	return refusal(err)
}

// refusal is the error that Redis returned, in one line and bounded.
func refusal(err error) string {
	if r, ok := errors.AsType[redis.Error](err); ok {
		err = r
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	return text[:min(len(text), 300)]
}

// lost is the error of a connection that ended because of err.
func lost(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &dial.HintError{Message: "the broker has not answered for a while", Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = &dial.HintError{Message: "the broker closed it", Err: err}
	case isRefusal(err):
		err = &dial.HintError{Message: refusal(err), Err: err}
	}
	return fmt.Errorf("%w: connection lost: %w", broker.ErrClosed, err)
}
