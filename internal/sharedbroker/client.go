package sharedbroker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
)

// maxReplies is how many replies may wait to be received.
const maxReplies = 10_000

// Broker is the broker of another process, which serves it with a Server. It is safe for concurrent use.
type Broker struct{ http http.Client }

// Dial returns the broker that is served on a Unix socket. It connects later.
func Dial(socket string) *Broker {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Broker{http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// String names the broker.
func (b *Broker) String() string { return "memory://" }

// Ephemeral implements broker.Ephemeral: nothing is kept for who is away.
func (b *Broker) Ephemeral() bool { return true }

// do sends a request. ctx bounds the answer's body too.
func (b *Broker) do(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("write a call: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://broker"+path, bytes.NewReader(text)) //nolint:gosec // it goes to the socket
	if err != nil {
		return nil, fmt.Errorf("call the broker: %w", err)
	}
	res, err := b.http.Do(r) //nolint:gosec // it goes to the socket
	if err != nil {
		return nil, fmt.Errorf("call the broker: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		why, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // what there is of it
		return nil, &refusal{strings.TrimSpace(string(why)), kinds()[res.StatusCode]}
	}
	return res.Body, nil
}

// link is a stream of values of another process.
type link[T any] struct {
	values chan T
	cancel context.CancelFunc
	done   chan struct{} // closed at the end, after err was set

	mu  sync.Mutex
	err error
}

// open opens a stream, whose first value goes to first unless that is nil. ctx bounds the call only. Where lossy, values that nobody
// receives are lost; else the other process waits.
func open[T any](ctx context.Context, b *Broker, path string, room int, lossy bool, first any) (*link[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	body, err := b.do(own, http.MethodGet, path, nil)
	var values *json.Decoder
	if err == nil {
		values = json.NewDecoder(body)
		values.UseNumber()
		if first != nil {
			err = values.Decode(first)
		}
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		if body != nil {
			_ = body.Close()
		}
		return nil, err
	}
	l := &link[T]{values: make(chan T, room), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer func() { _ = body.Close() }()
		l.end(l.read(own, values, lossy))
	}()
	return l, nil
}

// read reads values until the stream ends, and returns why it did.
func (l *link[T]) read(ctx context.Context, from *json.Decoder, lossy bool) error {
	for {
		var v T
		if err := from.Decode(&v); err != nil {
			return err //nolint:wrapcheck // end does
		}
		select {
		case l.values <- v:
			continue
		default:
		}
		if lossy {
			continue
		}
		select {
		case l.values <- v:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end ends the stream once.
func (l *link[T]) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	if l.err = broker.ErrClosed; cause != nil {
		l.err = fmt.Errorf("%w: %w", broker.ErrClosed, cause)
	}
	l.cancel()
	close(l.done)
}

// Err returns why the stream has ended, nil while it has not.
func (l *link[T]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close ends the stream.
func (l *link[T]) Close() error {
	l.end(nil)
	return nil
}

// Done is closed once the stream has ended.
func (l *link[T]) Done() <-chan struct{} { return l.done }

// receive waits for the next value.
func (l *link[T]) receive(ctx context.Context) (v T, err error) {
	if err := errors.Join(l.Err(), ctx.Err()); err != nil {
		return v, err
	}
	select {
	case v = <-l.values:
		return v, nil
	case <-l.done:
		return v, l.Err()
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// events implements broker.EventStream.
type events struct {
	*link[[]broker.Message]

	mu   sync.Mutex
	last uint64 // tag given last
}

// Subscribe implements broker.Broker.
func (b *Broker) Subscribe(ctx context.Context) (broker.EventStream, error) {
	l, err := open[[]broker.Message](ctx, b, "/events", 1, false, nil)
	if err != nil {
		return nil, err
	}
	return &events{link: l}, nil
}

// Receive implements broker.EventStream. The other process has gathered a batch.
func (s *events) Receive(ctx context.Context) ([]broker.Message, error) {
	batch, err := s.receive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		s.last++
		batch[i].Tag, batch[i].Redelivered = s.last, false
	}
	return batch, err
}

// Ack implements broker.EventStream: nothing is delivered again.
func (s *events) Ack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Err(); err != nil {
		return err
	}
	if tag > s.last {
		return fmt.Errorf("acknowledge message %d: only %d were received", tag, s.last)
	}
	return nil
}

// peerConn implements broker.PeerConn.
type peerConn struct {
	*link[[]byte]

	broker *Broker
	path   string
}

// OpenPeers implements broker.PeerBroker.
func (b *Broker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	var first opened
	l, err := open[[]byte](ctx, b, "/peers", broker.MaxPeerBacklog, true, &first)
	if err != nil {
		return nil, err
	}
	return &peerConn{l, b, "/peers/" + first.Key}, nil
}

// Publish implements broker.PeerConn.
func (c *peerConn) Publish(ctx context.Context, body []byte) error {
	if err := errors.Join(c.Err(), ctx.Err()); err != nil {
		return err
	}
	answer, err := c.broker.do(ctx, http.MethodPost, c.path, body)
	if err != nil {
		return err
	}
	return answer.Close() //nolint:wrapcheck // it cannot fail
}

// Receive implements broker.PeerConn.
func (c *peerConn) Receive(ctx context.Context) ([]byte, error) { return c.receive(ctx) }
