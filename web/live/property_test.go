package live_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// Whatever happens to the socket and whatever changes meanwhile, a client that is left alone for a
// moment shows what the source shows, and no frame ever breaks the sequence.
func TestClientsConvergeThroughBrokenSockets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Trials(300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { converge(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func converge(t *testing.T, r *rand.Rand) {
	t.Helper()
	s := newServer(t, live.Options{})
	s.set("t", nil)
	clients := make([]*client, 1+r.IntN(3))
	var reading sync.WaitGroup
	connect := func(c *client) {
		s.redial(c)
		reading.Go(func() {
			for {
				if _, err := c.read(t.Context()); err != nil {
					if strings.Contains(err.Error(), "read message") || strings.Contains(err.Error(), "row ") {
						t.Errorf("protocol: %v", err)
					}
					return
				}
			}
		})
	}
	for i := range clients {
		clients[i] = &client{t: t, topic: "t"}
		connect(clients[i])
	}
	for range 200 {
		c := clients[r.IntN(len(clients))]
		switch r.IntN(8) {
		case 0:
			_ = c.conn.CloseNow()
			synctest.Wait() // its reader has ended, so that the model is ours
			<-time.After(time.Duration(r.IntN(90)) * time.Duration(r.IntN(2)) * time.Second)
			connect(c)
		case 1:
			_ = c.conn.CloseNow()
			synctest.Wait()
			<-time.After(time.Duration(r.IntN(5)) * time.Second)
			connect(c)
		case 2:
			<-time.After(time.Duration(r.IntN(400)) * time.Millisecond)
		default:
			s.change(func() { s.topics["t"] = mutate(r, s.topics["t"]) })
		}
	}
	<-time.After(time.Second)
	synctest.Wait()
	want := s.topics["t"]
	for i, c := range clients {
		if !c.model.equal(want) {
			t.Errorf("client %d shows %+v, want %+v", i, c.model, want)
		}
	}
	for _, c := range clients {
		_ = c.conn.CloseNow()
	}
	reading.Wait()
}

// mutate returns a snapshot that differs from s in some random way.
func mutate(r *rand.Rand, s live.Snapshot) live.Snapshot {
	html := func() string { return fmt.Sprintf("<b>%d & \"%d\"</b>", r.IntN(5), r.IntN(5)) }
	regions := slices.Clone(s.Regions)
	if len(regions) == 0 || r.IntN(20) == 0 {
		regions = nil
		for i := range r.IntN(4) {
			regions = append(regions, live.Fragment{ID: fmt.Sprint("r", i)})
		}
	}
	for i := range regions {
		if r.IntN(2) == 0 {
			regions[i].HTML = html()
		}
	}
	list := live.List{ID: "l"}
	if len(s.Lists) > 0 {
		list.Rows = slices.Clone(s.Lists[0].Rows)
	}
	row := func() string { return "<tr><td>" + html() + "</td><td>" + html() + "</td></tr>" }
	for i := range list.Rows {
		switch r.IntN(8) {
		case 0:
			list.Rows[i].HTML = html()
		case 1:
			list.Rows[i].HTML = row()
		}
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(list.Rows), func(i, j int) { list.Rows[i], list.Rows[j] = list.Rows[j], list.Rows[i] })
	}
	if len(list.Rows) > 0 && r.IntN(3) == 0 {
		list.Rows = slices.Delete(list.Rows, 0, 1+r.IntN(len(list.Rows)))
	}
	id := fmt.Sprint("row", r.IntN(30))
	if !slices.ContainsFunc(list.Rows, func(f live.Fragment) bool { return f.ID == id }) {
		list.Rows = slices.Insert(list.Rows, 0, live.Fragment{ID: id, HTML: row()})
	}
	return live.Snapshot{Regions: regions, Lists: []live.List{list}}
}

// Over real sockets: one rendering serves all, nobody waits for a peer that has stopped reading, and
// what that peer misses piles up nowhere. It measures the heap, so nothing runs beside it.
func TestTwoHundredSockets(t *testing.T) {
	const sockets = 200
	src := newSource()
	filling := noise(1 << 20) // more than the kernel's buffers take for long
	show := func(i int) {
		src.change(func() {
			src.topics["t"] = live.Snapshot{Regions: fragments("n", fmt.Sprint(i))}
			src.topics["big"] = live.Snapshot{Regions: fragments("n", fmt.Sprint(i)+filling)}
		})
	}
	show(0)
	hub, err := live.New(live.Options{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hub.ServeHTTP(w, r.WithContext(auth.NewContext(r.Context(), auth.Grant{Audience: auth.Everything})))
	}))
	defer srv.Close()
	done := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	go func() { done <- hub.Run(ctx) }()

	dial := func(topic string) *client {
		c := &client{t: t, topic: topic}
		for c.conn == nil { // until Run has begun
			c.conn, _, err = websocket.Dial(ctx, c.url(srv.URL), nil)
			if ctx.Err() != nil {
				t.Fatalf("dial: %v", err)
			}
		}
		c.conn.SetReadLimit(-1)
		return c
	}
	stalled := dial("big") // and reads nothing
	defer func() { _ = stalled.conn.CloseNow() }()
	clients := make([]*client, sockets)
	for i := range clients {
		clients[i] = dial("t")
		clients[i].frame(ctx)
	}

	base, start := src.rendered("t"), time.Now()
	const last = 300
	var reading sync.WaitGroup
	for _, c := range clients {
		reading.Go(func() {
			for c.model.regions["n"] != fmt.Sprint(last) {
				if _, err := c.read(ctx); err != nil {
					t.Errorf("read: %v", err)
					return
				}
			}
		})
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range last {
		<-tick.C
		show(i + 1)
	}
	reading.Wait()

	frames := int(time.Since(start)/(250*time.Millisecond)) + 2
	if got := src.rendered("t") - base; got > frames {
		t.Errorf("%d renderings for %d sockets in %v, want at most %d", got, sockets, time.Since(start), frames)
	}
	for i, c := range clients {
		if c.model.frames-1 > frames {
			t.Errorf("client %d got %d frames in %v, want at most %d", i, c.model.frames, time.Since(start), frames)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if got, want := m.HeapAlloc>>20, uint64(96); got > want {
		t.Errorf("heap holds %d MiB, want at most %d", got, want)
	}
	t.Logf("%d renderings, heap %d MiB", src.rendered("t")-base, m.HeapAlloc>>20)
	cancel()
	for _, c := range clients {
		reading.Go(func() {
			for {
				if _, err := c.read(t.Context()); err != nil {
					return
				}
			}
		})
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	reading.Wait()
}
