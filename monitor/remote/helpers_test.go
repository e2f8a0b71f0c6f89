package remote_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is what a worker reads of a request.
type request struct {
	Method      string          `json:"method"`
	Arguments   map[string]any  `json:"arguments"`
	Destination []string        `json:"destination"`
	Ticket      string          `json:"ticket"`
	ReplyTo     *broker.ReplyTo `json:"reply_to"`
}

// answer is a reply after a while, of any content.
type answer struct {
	value string // of the node, JSON
	after time.Duration
	plain string // the whole body in place of value
	mime  string // application/json if empty
}

// worker replies requests. What it returns nil for it does not reply.
type worker func(r request) []answer

// says is a worker that replies everything alike.
func says(value string, after time.Duration) worker {
	return func(request) []answer { return []answer{{value: value, after: after}} }
}

func mute(request) []answer { return nil }

// fleet is a broker with workers.
type fleet struct {
	*inproc.Broker
	mu    sync.Mutex
	heard []request
	work  sync.WaitGroup
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{Broker: inproc.New(inproc.Options{})}
	t.Cleanup(f.work.Wait)
	return f
}

// add attaches a worker.
func (f *fleet) add(t *testing.T, node string, w worker) {
	t.Helper()
	t.Cleanup(f.Listen(f.listener(node, w)))
}

// listener is a worker's mailbox.
func (f *fleet) listener(node string, w worker) func(broker.Publishing) {
	return func(m broker.Publishing) {
		var r request
		if err := json.Unmarshal(m.Body, &r); err != nil {
			panic(err)
		}
		if len(r.Destination) > 0 && !slices.Contains(r.Destination, node) {
			return
		}
		f.mu.Lock()
		f.heard = append(f.heard, r)
		f.mu.Unlock()
		if r.ReplyTo == nil {
			return
		}
		for _, a := range w(r) {
			f.work.Go(func() { f.reply(node, r, a) })
		}
	}
}

// reply sends one reply.
func (f *fleet) reply(node string, r request, a answer) {
	<-time.After(a.after)
	body := a.plain
	if body == "" {
		name, _ := json.Marshal(node)
		body = "{" + string(name) + ":" + a.value + "}"
	}
	mime := a.mime
	if mime == "" {
		mime = "application/json"
	}
	f.Reply(*r.ReplyTo, broker.Publishing{
		ContentType: mime, ContentEncoding: "utf-8", Headers: map[string]any{"ticket": r.Ticket, "clock": int64(7)}, Body: []byte(body),
	})
}

// requests are those that workers heard.
func (f *fleet) requests() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

// blind is a broker that does not tell how many mailboxes a request reached, as RabbitMQ.
type blind struct{ broker.Broker }

func (b blind) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	conn, err := b.Broker.OpenControl(ctx)
	return blindConn{conn}, err
}

type blindConn struct{ broker.ControlConn }

func (conn blindConn) Request(ctx context.Context, m broker.Publishing) (int, error) {
	_, err := conn.ControlConn.Request(ctx, m)
	return -1, err
}

func newClient(t *testing.T, b broker.Broker) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.Options{Broker: b})
	if err != nil {
		t.Fatalf("new client: %v", err)
	}
	return c
}

// run runs something until the test ends, which is within a bubble of synctest.
func run(t *testing.T, f func(context.Context) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := f(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	end = sync.OnceFunc(func() {
		cancel()
		done.Wait()
	})
	t.Cleanup(end)
	synctest.Wait()
	return end
}

// in runs a test in a bubble, where time passes when nobody has anything to do.
func in(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// tells is a worker that replies each method with what the map has for it, and others not at all.
func tells(values map[string]string) worker {
	return func(r request) []answer {
		if v, ok := values[r.Method]; ok {
			return []answer{{value: v, after: ms}}
		}
		return nil
	}
}

// idle is what a worker with nothing to do replies.
func idle() map[string]string {
	return map[string]string{
		"stats": `{"pid":1}`, "active": `[]`, "reserved": `[]`, "scheduled": `[]`, "revoked": `[]`, "registered": `["tasks.add"]`,
		"active_queues": `[{"name":"celery"}]`, "conf": `{}`, "clock": `{"clock":7}`,
	}
}

// inspector is one whose client and itself run, on a fleet whose workers are alive.
func inspector(t *testing.T, f *fleet, alive ...string) *remote.Inspector {
	t.Helper()
	c := newClient(t, f)
	run(t, c.Run)
	i, err := remote.NewInspector(remote.InspectorOptions{Client: c, Alive: func() []string { return alive }})
	if err != nil {
		t.Fatalf("new inspector: %v", err)
	}
	run(t, i.Run)
	return i
}

// heardOf counts requests by method.
func heardOf(f *fleet) map[string]int {
	n := make(map[string]int)
	for _, r := range f.requests() {
		n[r.Method]++
	}
	return n
}

// rounds wants every request of a round so many times.
func rounds(n int) map[string]int {
	want := make(map[string]int)
	for method := range idle() {
		want[method] = n
	}
	return want
}
