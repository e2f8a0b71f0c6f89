// Package sharedbroker passes the broker of one process on to others, over a Unix socket. Each of them hears all events, and nothing
// is kept for one that is away. It is for the demo of several nodes.
package sharedbroker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// How many batches may wait for a process, and how long all others wait for one that takes none before its stream ends.
const (
	maxBacklog = 1_000
	patience   = 10 * time.Second
)

// Source is what is passed on.
type Source interface {
	broker.Broker
	broker.PeerBroker
}

// Server passes a broker on.
type Server struct {
	source Source

	mu       sync.Mutex
	session  *session // nil before the first event stream
	joined   int      // event streams that were opened
	joining  chan struct{}
	controls map[string]broker.ControlConn // open, by key
	peers    map[string]broker.PeerConn
}

// New returns a Server.
func New(source Source) *Server {
	return &Server{
		source: source, joining: make(chan struct{}), controls: make(map[string]broker.ControlConn), peers: make(map[string]broker.PeerConn),
	}
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("GET /control", s.control)
	mux.HandleFunc("POST /control/{key}", s.call)
	mux.HandleFunc("GET /peers", s.peer)
	mux.HandleFunc("POST /peers/{key}", s.publish)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(l)
	s.mu.Lock()
	if s.session != nil {
		_ = s.session.stream.Close()
	}
	s.mu.Unlock()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err //nolint:wrapcheck // it names what failed
}

// Joined waits until n event streams have been opened. It returns ctx's error if ctx ends first.
func (s *Server) Joined(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		enough, more := s.joined >= n, s.joining
		s.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session hands what one event stream of the source receives to all who listen. Its end is the end of theirs.
type session struct {
	stream broker.EventStream

	mu        sync.Mutex
	listeners map[*listener]struct{} // nil once it has ended
}

// listener is an event stream of another process.
type listener struct {
	batches chan []broker.Message
	once    sync.Once
	ended   chan struct{}
}

func (l *listener) end() { l.once.Do(func() { close(l.ended) }) }

// hand waits for room until patience ends.
func (l *listener) hand(batch []broker.Message) {
	select {
	case l.batches <- batch:
		return
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case l.batches <- batch:
	case <-late.C:
		l.end()
	case <-l.ended:
	}
}

// listen adds a listener, to a new session if there is none.
func (s *Server) listen(ctx context.Context) (*session, *listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil || s.session.stream.Err() != nil {
		stream, err := s.source.Subscribe(ctx)
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // as the source says it
		}
		s.session = &session{stream: stream, listeners: make(map[*listener]struct{})}
		go s.session.run(context.WithoutCancel(ctx))
	}
	l := &listener{batches: make(chan []broker.Message, maxBacklog), ended: make(chan struct{})}
	s.session.mu.Lock()
	defer s.session.mu.Unlock()
	if s.session.listeners == nil {
		return nil, nil, broker.ErrClosed
	}
	s.session.listeners[l] = struct{}{}
	s.joined++
	close(s.joining)
	s.joining = make(chan struct{})
	return s.session, l, nil
}

// run receives until the event stream ends.
func (s *session) run(ctx context.Context) {
	for {
		batch, err := s.stream.Receive(ctx)
		if err == nil {
			err = s.stream.Ack(batch[len(batch)-1].Tag)
		}
		s.mu.Lock()
		var all []*listener
		for l := range s.listeners {
			all = append(all, l)
		}
		if err != nil {
			s.listeners = nil
		}
		s.mu.Unlock()
		for _, l := range all {
			if err != nil {
				l.end()
			} else {
				l.hand(batch)
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *session) leave(l *listener) {
	l.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// frames writes JSON values, each at once.
type frames struct {
	*json.Encoder
	*http.ResponseController
}

// begin answers that a stream is open.
func begin(w http.ResponseWriter) frames {
	f := frames{json.NewEncoder(w), http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	_ = f.Flush() // whoever is gone is noticed later
	return f
}

func (f frames) write(v any) error { return errors.Join(f.Encode(v), f.Flush()) }

func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	session, l, err := s.listen(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer session.leave(l)
	out := begin(w)
	for {
		select {
		case batch := <-l.batches:
			if out.write(batch) != nil {
				return
			}
		case <-l.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// opened is the first value of a connection that takes calls.
type opened struct {
	Key     string
	ReplyTo broker.ReplyTo
}

// put adds a connection under a new key, which remove forgets.
func put[C any](s *Server, to map[string]C, c C) (key string, remove func()) {
	key = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	to[key] = c
	return key, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(to, key)
	}
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	c, err := s.source.OpenControl(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = c.Close() }()
	key, remove := put(s, s.controls, c)
	defer remove()
	out := begin(w)
	err = out.write(opened{key, c.ReplyTo()})
	for err == nil {
		var m broker.Publishing
		if m, err = c.ReceiveReply(r.Context()); err == nil {
			err = out.write(m)
		}
	}
}

func (s *Server) peer(w http.ResponseWriter, r *http.Request) {
	c, err := s.source.OpenPeers(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = c.Close() }()
	key, remove := put(s, s.peers, c)
	defer remove()
	out := begin(w)
	err = out.write(opened{Key: key})
	for err == nil {
		var body []byte
		if body, err = c.Receive(r.Context()); err == nil {
			err = out.write(body)
		}
	}
}

// publish passes a message between peers on.
func (s *Server) publish(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	c, ok := s.peers[r.PathValue("key")]
	s.mu.Unlock()
	var body []byte
	err := broker.ErrClosed
	if ok {
		err = json.NewDecoder(r.Body).Decode(&body)
	}
	if err == nil {
		err = c.Publish(r.Context(), body)
	}
	if err != nil {
		refuse(w, err)
	}
}
