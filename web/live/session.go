package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/umbelhq/umbel/web/fair"
)

// Limits of one socket.
const (
	maxSubs         = 16
	maxRequest      = 16 << 10 // bytes
	requestsPerSec  = 5
	requestBurst    = 32
	writeTimeout    = 10 * time.Second
	pingInterval    = 20 * time.Second
	pongTimeout     = 25 * time.Second // a silent peer is dead 45 s after it last spoke
	farewellTimeout = 2 * time.Second
)

var (
	errStopping = errors.New("server is stopping")
	errRequest  = errors.New("request cannot be read")
	errTopics   = errors.New("too many topics")
)

// session serves one socket. It pulls frames from its topics when the socket is free; nothing is
// queued for it. All but notify belongs to its own goroutines.
type session struct {
	hub    *Hub
	conn   *websocket.Conn
	client fair.Client
	wake   chan struct{}   // holds one element when a topic may have news
	in     chan request    // buffered, so that reading goes on during a slow write
	subs   []*subscription // owned by write
}

type subscription struct {
	topic  *topic
	cursor cursor
}

func newSession(h *Hub, conn *websocket.Conn, client fair.Client) *session {
	conn.SetReadLimit(maxRequest)
	return &session{hub: h, conn: conn, client: client, wake: make(chan struct{}, 1), in: make(chan request, requestBurst)}
}

// notify tells the session that a topic may have news. It never blocks.
func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run serves the socket until either side ends it or the hub stops.
func (s *session) run(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{}, 2)
	go func() { cancel(s.read(ctx)); done <- struct{}{} }()
	go func() { cancel(s.ping(ctx)); done <- struct{}{} }()

	err := s.write(ctx)
	for _, sub := range s.subs {
		sub.topic.unsubscribe(s)
	}
	s.close(err, cancel)
	cancel(err)
	<-done
	<-done
	s.hub.opt.Logger.Debug("socket closed", "cause", err)
}

// close says why to a peer that can still hear it, and closes the connection in any case. A peer
// that does not answer is cut off by cancel.
func (s *session) close(err error, cancel context.CancelCauseFunc) {
	code := websocket.StatusPolicyViolation
	switch {
	case errors.Is(err, errStopping):
		code = websocket.StatusGoingAway
	case !errors.Is(err, errRequest):
		_ = s.conn.CloseNow()
		return
	}
	timer := time.AfterFunc(farewellTimeout, func() { cancel(err) })
	defer timer.Stop()
	_ = s.conn.Close(code, err.Error())
}

// read passes the client's requests to write.
func (s *session) read(ctx context.Context) error {
	limit := rate.NewLimiter(requestsPerSec, requestBurst)
	for {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		_, b, err := s.conn.Read(ctx)
		if err != nil {
			return fmt.Errorf("read socket: %w", err)
		}
		var req request
		if err := json.Unmarshal(b, &req); err != nil {
			req = request{} // write refuses it
		}
		select {
		case s.in <- req:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ping fails when the peer is silent for too long, or keeps the hub from stopping.
func (s *session) ping(ctx context.Context) error {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.hub.stop:
			select {
			case <-time.After(farewellTimeout):
				return errStopping
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		pctx, cancel := context.WithTimeout(ctx, pongTimeout)
		err := s.conn.Ping(pctx)
		cancel()
		if err != nil {
			return fmt.Errorf("ping socket: %w", err)
		}
	}
}

// write sends one frame after the other while there are any, and serves requests in between.
func (s *session) write(ctx context.Context) error {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	if err := s.send(ctx, beat{V: protocol, Now: time.Now().UnixMilli()}); err != nil {
		return err
	}
	for {
		sent, err := s.advance(ctx)
		if err != nil {
			return err
		}
		if sent {
			s.notify() // there may be more
		}
		select {
		case <-s.wake:
		case req := <-s.in:
			err = s.serve(ctx, req)
		case now := <-tick.C:
			err = s.send(ctx, beat{V: protocol, Now: now.UnixMilli()})
		case <-s.hub.stop:
			err = errStopping
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// advance sends at most one frame of each topic and reports whether it sent any.
func (s *session) advance(ctx context.Context) (sent bool, err error) {
	for _, sub := range slices.Clone(s.subs) {
		f, err := sub.topic.next(&sub.cursor)
		switch {
		case err != nil:
			err = s.refuse(ctx, sub.topic.name, err)
		case f != nil:
			sent = true
			err = s.post(ctx, f)
		default:
			err = s.tell(ctx, sub)
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// tell says that the topic cannot be rendered now, or that it can again.
func (s *session) tell(ctx context.Context, sub *subscription) error {
	late := sub.topic.isLate()
	if late == sub.cursor.late {
		return nil
	}
	sub.cursor.late = late
	return s.send(ctx, delay{V: protocol, Topic: sub.topic.name, Late: late})
}

// serve does what the client asks.
func (s *session) serve(ctx context.Context, req request) error {
	i := slices.IndexFunc(s.subs, func(sub *subscription) bool { return sub.topic.name == req.Topic })
	switch {
	case req.Op == "sub" && i < 0 && len(s.subs) >= maxSubs:
		return s.refuse(ctx, req.Topic, errTopics)
	case req.Op == "sub":
		t, c := s.hub.subscribe(s, req)
		switch {
		case t == nil:
			return s.refuse(ctx, req.Topic, errTopics)
		case i >= 0:
			s.subs[i].cursor = c
		default:
			s.subs = append(s.subs, &subscription{topic: t, cursor: c})
		}
		return nil
	case req.Op == "unsub" && i >= 0:
		s.drop(req.Topic)
		return nil
	case req.Op == "unsub":
		return nil
	default:
		return errRequest
	}
}

// refuse ends a topic that cannot be shown, if it has begun.
func (s *session) refuse(ctx context.Context, name string, cause error) error {
	s.drop(name)
	return s.send(ctx, refusal{V: protocol, Topic: name, Error: cause.Error()})
}

func (s *session) drop(name string) {
	s.subs = slices.DeleteFunc(s.subs, func(sub *subscription) bool {
		if sub.topic.name != name {
			return false
		}
		sub.topic.unsubscribe(s)
		return true
	})
}

func (s *session) send(ctx context.Context, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return s.post(ctx, b)
}

// post writes one message. A peer that does not take it in time loses the connection.
func (s *session) post(ctx context.Context, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, b); err != nil {
		return fmt.Errorf("write socket: %w", err)
	}
	return nil
}
