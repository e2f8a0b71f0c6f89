package dashboard_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// lines are those of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody reads as many
	}
	return len(line), nil
}

// It is not parallel, since it changes the default logger.
func TestWhatIsWrongIsLoggedUnlessToldOtherwise(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	standard, own := make(lines, 100), make(lines, 100)
	slog.SetDefault(slog.New(slog.NewTextHandler(standard, nil)))
	for name, tt := range map[string]struct {
		logger      *slog.Logger
		used, other lines
	}{
		"told nothing":   {nil, standard, own},
		"told otherwise": {slog.New(slog.NewTextHandler(own, nil)), own, standard},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := dashboard.New(dashboard.Options{BrokerURL: "amqp://guest:secret@" + deaf(t), Logger: tt.logger})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- u.Run(ctx) }()
			line := <-tt.used
			for !strings.Contains(line, "broker not connected") {
				line = <-tt.used
			}
			if strings.Contains(line, "secret") {
				t.Errorf("the password is logged: %s", line)
			}
			cancel()
			if err := errors.Join(<-done, u.Close()); err != nil {
				t.Error(err)
			}
			if len(tt.other) > 0 {
				t.Errorf("the other logger got %s", <-tt.other)
			}
			for len(tt.used) > 0 {
				<-tt.used
			}
		})
	}
}

// deaf is an address at which nobody listens.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
