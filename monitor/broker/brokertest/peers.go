package brokertest

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// PeerFixture is a Broker whose peers are tested. Every call of the function given to RunPeers makes a fresh one, whose messages no other
// fixture sees.
type PeerFixture struct {
	Broker broker.PeerBroker
	// Break makes Broker's current connections between peers lose their connections.
	Break func(t *testing.T)
}

// RunPeers runs the suite of connections between peers, each test on its own fixture.
func RunPeers(t *testing.T, open func(t *testing.T) PeerFixture) {
	t.Helper()
	tests := map[string]func(peerTest){
		"all receive what one publishes, in order": peerTest.all,
		"bodies are passed on as they are":         peerTest.bodies,
		"nothing is kept for those who come later": peerTest.late,
		"Receive honours its context":              peerTest.context,
		"Close ends the connection":                peerTest.closeEnds,
		"a lost connection ends every method":      peerTest.lost,
		"OpenPeers honours its context":            peerTest.openContext,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(peerTest{T: t, PeerFixture: open(t)})
		})
	}
}

type peerTest struct {
	*testing.T
	PeerFixture
}

func (c peerTest) open() broker.PeerConn {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	p, err := c.Broker.OpenPeers(ctx)
	if err != nil {
		c.Fatalf("open peers: %v", err)
	}
	c.Cleanup(func() {
		if err := p.Close(); err != nil {
			c.Errorf("close peers: %v", err)
		}
	})
	return p
}

func (c peerTest) publish(p broker.PeerConn, body string) {
	c.Helper()
	if err := p.Publish(c.Context(), []byte(body)); err != nil {
		c.Fatalf("publish: %v", err)
	}
}

func (c peerTest) expect(p broker.PeerConn, want string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	got, err := p.Receive(ctx)
	if err != nil || string(got) != want {
		c.Fatalf("received %.50q, error %v, want %.50q", got, err, want)
	}
}

func (c peerTest) all() {
	peers := []broker.PeerConn{c.open(), c.open(), c.open()}
	for i := range 100 {
		c.publish(peers[0], strconv.Itoa(i))
	}
	for _, p := range peers {
		for i := range 100 {
			c.expect(p, strconv.Itoa(i))
		}
	}
}

func (c peerTest) bodies() {
	p := c.open()
	for _, body := range []string{"{}", "\x00\xff\r\n", strings.Repeat("x", broker.MaxPeerMessage)} {
		c.publish(p, body)
		c.expect(p, body)
	}
}

func (c peerTest) late() {
	first := c.open()
	c.publish(first, "before")
	c.expect(first, "before")
	second := c.open()
	c.publish(first, "after")
	c.expect(second, "after")
}

func (c peerTest) context() {
	p := c.open()
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		c.Errorf("receive: %v, want %v", err, context.DeadlineExceeded)
	}
	c.publish(p, "still open")
	c.expect(p, "still open")
}

func (c peerTest) closeEnds() {
	p := c.open()
	done := make(chan error, 1)
	go func() {
		_, err := p.Receive(c.Context())
		done <- err
	}()
	if err := p.Close(); err != nil {
		c.Errorf("close: %v", err)
	}
	c.expectClosed(<-done)
	c.expectClosed(p.Publish(c.Context(), []byte("x")))
	_, err := p.Receive(c.Context())
	c.expectClosed(err)
}

func (c peerTest) lost() {
	p := c.open()
	c.Break(c.T)
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	_, err := p.Receive(ctx)
	c.expectClosed(err)
	c.expectClosed(p.Publish(ctx, []byte("x")))
}

func (c peerTest) expectClosed(err error) {
	c.Helper()
	if !errors.Is(err, broker.ErrClosed) {
		c.Errorf("after the end: error %v, want %v", err, broker.ErrClosed)
	}
}

func (c peerTest) openContext() {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := c.Broker.OpenPeers(ctx); !errors.Is(err, context.Canceled) {
		c.Errorf("open peers: %v, want %v", err, context.Canceled)
	}
}
