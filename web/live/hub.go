package live

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
)

// Limits of a hub.
const (
	parkedAge    = 60 * time.Second // how long topics without subscribers are kept
	parkedTopics = 32               // how many of them
	maxTopics    = 2048             // topics in all
	maxRings     = 64 << 20         // bytes of frames kept by all topics
	renderSlots  = 16               // renderings at work
)

// Options of a Hub. Source is required.
type Options struct {
	Source     Source
	Auth       auth.Authenticator // asked again while a socket is open, nil never
	MaxSockets int                // sockets at once, further ones get 503; 0 means 1,000
	Origins    []string           // origins like https://host that may connect besides the host itself
	Logger     *slog.Logger       // nil discards
}

// key is that of a topic: who sees different things of a page shares nothing.
type key struct {
	audience auth.Audience
	topic    string
}

// Hub serves sockets. It is safe for concurrent use.
type Hub struct {
	opt   Options
	slots *fair.Slots  // for renderings
	share atomic.Int64 // bytes of frames that each topic may keep
	pages pages
	pack  compressor

	frames, bytes atomic.Uint64 // written to sockets

	mu      sync.Mutex
	stop    chan struct{} // closed when Run ends, nil until it begins
	stopped bool
	sockets int
	serial  uint64 // of the last socket
	topics  map[key]*topic
	wg      sync.WaitGroup // sockets and topics; added to under mu while not stopped
}

// New validates o and starts nothing.
func New(o Options) (*Hub, error) {
	if o.Source == nil {
		return nil, errors.New("live: option Source is missing")
	}
	if o.MaxSockets < 0 {
		return nil, errors.New("live: option MaxSockets is negative")
	}
	o.MaxSockets = cmp.Or(o.MaxSockets, 1000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		opt:    o,
		slots:  fair.New(renderSlots),
		topics: map[key]*topic{},
	}, nil
}

// Run serves sockets until ctx ends, then closes them with status 1001 and waits for them. Before
// and after, requests for sockets get 503.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	if h.stop != nil {
		h.mu.Unlock()
		return errors.New("run hub: it has been started before")
	}
	h.stop = make(chan struct{})
	h.mu.Unlock()

	tick := time.NewTicker(parkedAge / 4)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			h.mu.Lock()
			h.expire(now)
			h.mu.Unlock()
		case <-ctx.Done():
			h.mu.Lock()
			h.stopped = true
			close(h.stop)
			h.mu.Unlock()
			h.wg.Wait()
			return nil
		}
	}
}

// Remember keeps for a while what a page showed when it was served. A socket that names the page gets only what has
// changed since.
func (h *Hub) Remember(a auth.Audience, topic, name string, s Snapshot) {
	h.pages.add(served{key{a, topic}, name, time.Now(), s})
}

// ServeHTTP upgrades the request to a WebSocket and serves it until either side ends it.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serial, ok := h.enter()
	if !ok {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "no live updates now", http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		OriginPatterns:  h.opt.Origins,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		h.opt.Logger.Debug("socket refused", "error", err)
		return
	}
	// The connection outlives the request's context in some servers and not in others.
	client := fair.FromContext(r.Context())
	client.Part = "socket " + strconv.FormatUint(serial, 10)
	s := &session{hub: h, conn: conn, client: client, wake: make(chan struct{}, 1)}
	req := newRequest(r.URL.Query())
	s.opened = r.WithContext(context.WithoutCancel(r.Context()))
	s.key = key{auth.FromContext(r.Context()).Audience, req.topic}
	if why := auth.Decide(r.Context(), h.opt.Source.Action(req.topic)); why != nil {
		_ = conn.Close(refused(why), truncate.Text(why.Message, maxReason))
		return
	}
	if !h.subscribe(s, req) {
		_ = conn.Close(websocket.StatusTryAgainLater, "too many topics")
		return
	}
	s.run(context.WithoutCancel(r.Context()))
}

// enter takes a place for a socket and numbers it. It reports whether there was one.
func (h *Hub) enter() (serial uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stop == nil || h.stopped || h.sockets >= h.opt.MaxSockets {
		return 0, false
	}
	h.sockets++
	h.serial++
	h.wg.Add(1)
	return h.serial, true
}

func (h *Hub) leave() {
	h.mu.Lock()
	h.sockets--
	h.mu.Unlock()
	h.wg.Done()
}

// subscribe gives s its topic, and reports whether there was room for it. The caller is a socket, so Run waits for the
// topic as well.
func (h *Hub) subscribe(s *session, req request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.topics[s.key]
	if !ok {
		h.expire(time.Now())
		if len(h.topics) >= maxTopics {
			return false
		}
		t = newTopic(s.key, h)
		h.topics[s.key] = t
		h.share.Store(int64(min(ringBytes, maxRings/len(h.topics))))
	}
	c, start := t.subscribe(s, req)
	c.base = h.pages.find(s.key, req.page)
	s.topic, s.cursor = t, c
	if start {
		h.wg.Go(t.run)
	}
	return true
}

// expire forgets topics that were left too long ago, and the longest left ones if there are too
// many. The caller holds mu.
func (h *Hub) expire(now time.Time) {
	parked := 0
	var oldest *topic
	var since time.Time
	for name, t := range h.topics {
		left, ok := t.parkedSince()
		switch {
		case !ok:
			continue
		case now.Sub(left) > parkedAge:
			delete(h.topics, name)
			continue
		case oldest == nil || left.Before(since):
			oldest, since = t, left
		}
		parked++
	}
	if parked > parkedTopics {
		delete(h.topics, oldest.key)
	}
	h.share.Store(int64(min(ringBytes, maxRings/max(1, len(h.topics)))))
}
