package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// The connection is cut 100 times under 500 events a second, each time once the page has heard something new: no row is missed,
// and none is shown that there was not.
func TestEndToEndNoRowIsMissed(t *testing.T) {
	t.Parallel()
	const cuts, perCut = 100, 2 // which are fewer tasks than a page has
	s := newServer(t, "", nil)
	line := newLine(t, s.address)
	tb := newTab(t, testbrowser.Open(t), &server{t: t, address: line.address}, "/tasks?chart=off&limit=500")
	tb.until(live)
	tb.eval(`void (() => {
		Math.random = () => 0.1; // of the time until it connects again
		window.heard = 0;
		window.WebSocket = class extends WebSocket {
			constructor(url) {
				super(url);
				this.addEventListener("message", (e) => typeof e.data !== "string" && window.heard++);
			}
		};
		window.shown = new Set();
		new MutationObserver(() => { for (const row of document.querySelectorAll("#tasks tr")) shown.add(row.id); })
			.observe(document.querySelector("#tasks"), { childList: true });
		window.stays = true;
	})()`)
	more := make(chan struct{}) // tasks
	var sending sync.WaitGroup
	sending.Go(func() { emit(s.backend, more, perCut) })
	line.cut()
	for range cuts {
		tb.until(`window.heard > 0`)
		tb.eval(`void (window.heard = 0)`)
		more <- struct{}{}
		line.cut()
	}
	close(more)
	sending.Wait()
	tb.until(live)
	tb.converges()
	tb.want(`window.stays`, true) // nothing was loaded
	tb.want(`document.querySelectorAll("#tasks tr").length`, float64(30+cuts*perCut))
	tb.want(`[...shown].filter((id) => !document.getElementById(id)).join()`, "")
	tb.want(fmt.Sprintf(`Array.from({ length: %d }, (_, i) => "t-new-" + i).filter((id) => !shown.has(id)).join()`, cuts*perCut), "")
}

// emit applies 500 events a second until there are no more tasks: each time more are received, perCut of them, and all change
// meanwhile.
func emit(b *changingBackend, more <-chan struct{}, perCut int) {
	kinds := []state.Kind{state.TaskStarted, state.TaskRetried, state.TaskFailed, state.TaskSucceeded}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n, i := 0, 0; ; <-tick.C {
		var events []*state.Event
		select {
		case _, ok := <-more:
			if !ok {
				return
			}
			for range perCut {
				events = append(events, taskEvent(state.TaskReceived, fmt.Sprint("new-", n), int(b.second.Add(1))))
				n++
			}
		default:
		}
		for range 5 {
			id := fmt.Sprintf("task-%02d", i%30)
			if i%2 == 0 && n > 0 {
				id = fmt.Sprint("new-", i/2%n)
			}
			events = append(events, taskEvent(kinds[i%7%4], id, int(b.second.Add(1))))
			i++
		}
		b.Apply(events...)
	}
}

// line leads to a server, until it is cut.
type line struct {
	address string

	mu    sync.Mutex
	conns []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{address: listener.Addr().String()}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.lead(conn, to) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.cut()
		running.Wait()
	})
	return l
}

// lead copies both ways until one side ends.
func (l *line) lead(conn net.Conn, to string) {
	var d net.Dialer
	far, err := d.DialContext(context.Background(), "tcp", to)
	if err != nil {
		_ = conn.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, conn, far)
	l.mu.Unlock()
	var copying sync.WaitGroup
	for _, ends := range [][2]net.Conn{{conn, far}, {far, conn}} {
		copying.Go(func() {
			_, _ = io.Copy(ends[0], ends[1])
			_ = ends[0].Close()
			_ = ends[1].Close()
		})
	}
	copying.Wait()
}

// cut closes all connections.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}
