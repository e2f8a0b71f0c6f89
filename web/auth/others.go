package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	lookEvery = 2 * time.Second        // at the store, for those who have signed out with another process
	lookPause = 250 * time.Millisecond // between looks, of which each unknown cookie or token asks for one
	lookMost  = 2 * time.Second        // for one look
)

// others bounds how often the store is read for what other processes have written to it.
type others struct {
	mu    sync.Mutex
	begun time.Time // of the last look
}

// refresh takes over who has signed in or out with another process until now. It returns false if there is none.
func (s *Service) refresh(ctx context.Context) bool {
	if s.others == nil {
		return false
	}
	asked := time.Now()
	s.others.mu.Lock()
	defer s.others.mu.Unlock()
	if s.others.begun.After(asked) { // by another who waited
		return true
	}
	select {
	case <-ctx.Done():
		return true
	case <-time.After(time.Until(s.others.begun.Add(lookPause))):
	}
	s.others.begun = time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookMost) // for all who wait
	defer cancel()
	if err := errors.Join(s.sessions.read(ctx, s.now()), s.tokens.read(ctx)); err != nil {
		s.log.WarnContext(ctx, "sessions and tokens cannot be read", "error", err)
	}
	return true
}
