package dashboard

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web"
)

// Shown is a Dashboard, or Clusters.
type Shown interface {
	http.Handler
	io.Closer
	Run(ctx context.Context) error
}

// Later is a dashboard whose history cannot be reached yet. Its pages say so until Run can open it. It is safe for concurrent use.
type Later struct {
	open    func() (Shown, error)
	waiting http.Handler
	log     *slog.Logger

	mu    sync.Mutex
	shown Shown // nil until it is open
}

// Open calls open, which is New or NewClusters with o. If the history cannot be reached, it returns what tries that again.
func Open(o Options, open func() (Shown, error)) (Shown, error) {
	shown, err := open()
	if !errors.Is(err, history.ErrUnreachable) {
		return shown, err
	}
	l := &Later{open: open, log: o.Logger}
	l.log.Error("history cannot be reached: it is tried again", "error", err)
	l.waiting, err = web.NewWaiting(web.Options{Prefix: o.Prefix, Title: o.Title, Color: o.Color, Hosts: o.Hosts, Origins: o.Origins, Logger: o.Logger})
	return l, err
}

// Run tries to open the history until it can be reached, then watches until ctx ends. A cause that does not pass is an error.
func (l *Later) Run(ctx context.Context) error {
	const first, most = 500 * time.Millisecond, 5 * time.Second
	for failures := 1; ; failures++ {
		wait := retry.After(failures, first, most)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		shown, err := l.open()
		switch {
		case err == nil:
			l.log.Info("history is open", "failures", failures)
			l.mu.Lock()
			l.shown = shown
			l.mu.Unlock()
			return shown.Run(ctx)
		case !errors.Is(err, history.ErrUnreachable):
			return err
		}
		l.log.Warn("history cannot be reached", "error", err, "failures", failures)
	}
}

// ServeHTTP shows the dashboard, or why there is none.
func (l *Later) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	shown := l.shown
	l.mu.Unlock()
	if shown == nil {
		l.waiting.ServeHTTP(w, r)
		return
	}
	shown.ServeHTTP(w, r)
}

// Close closes the history, if it is open.
func (l *Later) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown == nil {
		return nil
	}
	return l.shown.Close()
}
