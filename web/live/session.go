package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
)

// Limits of one socket.
const (
	writeTimeout = 10 * time.Second
	pingInterval = 20 * time.Second
	pongTimeout  = 25 * time.Second // a silent peer is dead 45 s after its last answer
	closeTimeout = 2 * time.Second
	maxReason    = 120 // bytes of why a socket is closed, which the protocol bounds
)

var errStopping = errors.New("server is stopping")

// session serves one socket, which shows one topic. It takes frames from the topic when the socket is free; nothing is
// queued for it. All but notify belongs to its own goroutines.
type session struct {
	hub    *Hub
	conn   *websocket.Conn
	client fair.Client
	wake   chan struct{} // holds one element when the topic may have news
	key    key
	opened *http.Request // that opened the socket
	topic  *topic
	cursor cursor
}

// notify tells the session that its topic may have news. It never blocks.
func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run serves the socket until either side ends it or the hub stops.
func (s *session) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	open := s.conn.CloseRead(ctx) // clients send nothing but control frames
	pinging := make(chan struct{})
	go func() {
		defer close(pinging)
		defer cancel()
		s.ping(open)
	}()
	err := s.write(open)
	s.topic.unsubscribe(s)
	s.close(err, cancel)
	cancel()
	<-pinging
	s.hub.opt.Logger.Debug("socket closed", "cause", err)
}

// close says why to a peer that may still hear it, and closes the connection in any case. A peer that does not answer is
// cut off by cancel.
func (s *session) close(err error, cancel func()) {
	code := websocket.StatusNormalClosure
	why, denied := errors.AsType[*auth.Error](err)
	switch {
	case denied:
		code = refused(why)
	case errors.Is(err, errStopping):
		code = websocket.StatusGoingAway
	case !errors.Is(err, ErrNoTopic):
		_ = s.conn.CloseNow()
		return
	}
	timer := time.AfterFunc(closeTimeout, cancel)
	defer timer.Stop()
	_ = s.conn.Close(code, truncate.Text(err.Error(), maxReason))
}

// ping returns when the peer is silent for too long, or keeps the hub from stopping.
func (s *session) ping(ctx context.Context) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.hub.stop:
			select {
			case <-time.After(closeTimeout):
			case <-ctx.Done():
			}
			return
		case <-ctx.Done():
			return
		}
		pctx, cancel := context.WithTimeout(ctx, pongTimeout)
		err := s.conn.Ping(pctx)
		cancel()
		if err != nil {
			return
		}
	}
}

// write sends one frame after the other while there are any.
func (s *session) write(ctx context.Context) error {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	err := s.send(ctx, beat{V: protocol, Now: time.Now().UnixMilli()})
	ender, _ := s.hub.opt.Auth.(auth.Ender)
	var ended <-chan struct{}    // when credentials of anybody have ended
	var expired <-chan time.Time // when those of the socket end by themselves
	if ender != nil && err == nil {
		var until time.Time
		ended = ender.Ended()
		if until, err = s.recheck(); !until.IsZero() { //nolint:contextcheck // it authenticates the request that opened the socket
			expired = time.After(time.Until(until))
		}
	}
	for err == nil {
		if err = s.advance(ctx); err != nil {
			break
		}
		select {
		case <-s.wake:
		case now := <-tick.C:
			if _, err = s.recheck(); err == nil { //nolint:contextcheck // as above
				err = s.send(ctx, beat{V: protocol, Now: now.UnixMilli()})
			}
		case <-ended:
			ended = ender.Ended()
			_, err = s.recheck() //nolint:contextcheck // as above
		case <-expired:
			expired = nil
			_, err = s.recheck() //nolint:contextcheck // as above
		case <-s.hub.stop:
			err = errStopping
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// recheck returns an error if who opened the socket may no longer see what it shows, and else until when they may.
func (s *session) recheck() (until time.Time, err error) {
	if s.hub.opt.Auth == nil {
		return until, nil
	}
	g, err := s.hub.opt.Auth.Authenticate(s.opened)
	ctx := auth.NewContext(s.opened.Context(), g)
	if err != nil {
		ctx = auth.Refused(ctx, err)
	}
	if why := auth.Decide(ctx, s.hub.opt.Source.Action(s.key.topic)); why != nil {
		return until, why
	}
	if g.Audience != s.key.audience {
		return until, &auth.Error{Status: http.StatusForbidden, Message: "What you may see has changed."}
	}
	return g.Until, nil
}

// Status codes of sockets that are closed because of who opened them.
const (
	statusUnauthorized = websocket.StatusCode(4000 + http.StatusUnauthorized)
	statusForbidden    = websocket.StatusCode(4000 + http.StatusForbidden)
)

// refused is the code to close a socket with.
func refused(why *auth.Error) websocket.StatusCode {
	switch why.Status {
	case http.StatusForbidden:
		return statusForbidden
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return websocket.StatusTryAgainLater
	}
	return statusUnauthorized
}

// advance sends the next frame, if there is one, or that the topic cannot be rendered now, or that it can again.
func (s *session) advance(ctx context.Context) error {
	message, err := s.topic.next(&s.cursor)
	if err != nil {
		return errors.Join(err, s.send(ctx, refusal{err.Error()}))
	}
	if message != nil {
		s.notify() // there may be more
		return s.post(ctx, websocket.MessageBinary, message)
	}
	late := s.topic.isLate()
	if late == s.cursor.late {
		return nil
	}
	s.cursor.late = late
	return s.send(ctx, delay{late})
}

func (s *session) send(ctx context.Context, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return s.post(ctx, websocket.MessageText, b)
}

// post writes one message. A peer that does not take it in time loses the connection.
func (s *session) post(ctx context.Context, kind websocket.MessageType, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	s.hub.frames.Add(1)
	s.hub.bytes.Add(uint64(len(b)))
	if err := s.conn.Write(ctx, kind, b); err != nil {
		return fmt.Errorf("write socket: %w", err)
	}
	return nil
}
