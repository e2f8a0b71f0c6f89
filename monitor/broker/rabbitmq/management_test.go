package rabbitmq_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

const secret = "pa55w0rd"

// fakeManagement answers as a management API might, from a map of paths, and is told to a control connection by a URL with a
// login.
func fakeManagement(t *testing.T, answer http.HandlerFunc) (address string) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return "http://monitor:" + secret + "@" + s.Listener.Addr().String()
}

// stats opens a control connection with a management API and returns the stats of queues.
func stats(t *testing.T, management string, names ...string) broker.QueueStats {
	t.Helper()
	o := options(t)
	o.ManagementURL = management
	s, err := openControl(t, controlBroker(t, o)).QueueStats(soon(t), names)
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	if all := fmt.Sprintf("%+v", s); strings.Contains(all, secret) {
		t.Errorf("stats contains the password: %s", all)
	}
	return s
}

func TestManagementTellsOfQueues(t *testing.T) {
	t.Parallel()
	management := fakeManagement(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "monitor" || password != secret {
			t.Errorf("login = %s, %s", user, password)
		}
		answer := map[string]string{
			"/api/queues/%2F": `{"page_count":1,"items":[
				{"name":"mail","type":"quorum","state":"running","durable":true,"consumers":2,"messages_ready":7,
				 "messages_unacknowledged":3,"arguments":{"x-max-priority":9},
				 "message_stats":{"publish":100,"deliver_get":95,"ack":90,"redeliver":5}},
				{"name":"odd","messages_ready":"many","consumers":-1,"durable":"yes","state":5,"message_stats":[],"arguments":null},
				{"name":7}, "no object", null]}`,
			"/api/overview": `{"rabbitmq_version":"4.1.0","object_totals":{"connections":12},"disable_stats":true}`,
			"/api/nodes": `[{"name":"rabbit@a","mem_used":10,"mem_limit":100,"mem_alarm":true},
				{"name":"rabbit@b","mem_used":20,"mem_limit":200,"disk_free_alarm":true},{"name":"rabbit@c"}]`,
		}[r.URL.EscapedPath()]
		if answer == "" {
			t.Errorf("path %s was asked for", r.URL.EscapedPath())
		}
		_, _ = io.WriteString(w, answer)
	})
	s := stats(t, management+"/", "mail", "gone")
	if got, want := s.Source, "management API"; got != want {
		t.Errorf("source = %q, want %q", got, want)
	}
	wantBroker := broker.Info{
		Kind: "RabbitMQ", Version: "4.1.0", Memory: new(int64(30)), MemoryLimit: new(int64(300)), Clients: new(int64(12)),
		Warnings: []string{
			"RabbitMQ gathers no statistics (management.disable_stats): rates are unknown.",
			"Node rabbit@a is short of memory: RabbitMQ takes no messages.",
			"Node rabbit@b is short of disk space: RabbitMQ takes no messages.",
		},
	}
	expectEqual(t, "broker", s.Broker, wantBroker)
	expectEqual(t, "queues", s.Queues, []broker.Queue{
		{Name: "gone", Missing: true},
		{
			Name: "mail", Type: "quorum", State: "running", Durable: new(true), Consumers: new(int64(2)), Ready: new(int64(7)),
			Unacked: new(int64(3)), MaxPriority: new(int64(9)), Published: new(int64(100)), Delivered: new(int64(95)),
			Acked: new(int64(90)), Redelivered: new(int64(5)),
		},
		{Name: "odd"},
	})
}

func TestManagementListsManyQueues(t *testing.T) {
	t.Parallel()
	all := []string{"asked-1", "asked-2"}
	for i := range 700 {
		all = append(all, "w"+strconv.Itoa(i)+".celery.pidbox")
	}
	for i := range 300 {
		all = append(all, "z"+strconv.Itoa(i))
	}
	slices.Sort(all)
	management := fakeManagement(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/queues/") {
			http.Error(w, "not for you", http.StatusForbidden)
			return
		}
		page, _ := strconv.Atoi(r.FormValue("page"))
		size, _ := strconv.Atoi(r.FormValue("page_size"))
		var items []map[string]any
		for _, name := range all[(page-1)*size : min(page*size, len(all))] {
			items = append(items, map[string]any{"name": name, "messages_ready": 1})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "page_count": (len(all) + size - 1) / size})
	})
	s := stats(t, management, "asked-2", "asked-1")
	if got, want := len(s.Queues), 500; got != want {
		t.Fatalf("stats has %d queues, want %d", got, want)
	}
	mailboxes := 0
	for _, q := range s.Queues[302:] {
		if strings.HasSuffix(q.Name, ".pidbox") {
			mailboxes++
		}
	}
	if s.Queues[0].Name != "asked-1" || s.Queues[1].Name != "asked-2" || mailboxes != 198 {
		t.Errorf("stats begins with %s and %s and has %d mailboxes at its end, want 198",
			s.Queues[0].Name, s.Queues[1].Name, mailboxes)
	}
	if len(s.Broker.Warnings) != 0 {
		t.Errorf("warnings = %q, though only mailboxes are left out", s.Broker.Warnings)
	}
}

func TestQueueObjects(t *testing.T) {
	t.Parallel()
	management := fakeManagement(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() != "/api/queues/%2F" {
			t.Errorf("asked for %s", r.URL.RequestURI())
		}
		_, _ = io.WriteString(w, `[{"name":"b","rate":0.0},{"name":"other"},{"name":"a","messages":7},7]`)
	})
	o := options(t)
	o.ManagementURL = management
	c := openControl(t, controlBroker(t, o)).(broker.QueueObjecter)
	got, err := c.QueueObjects(soon(t), []string{"a", "b", "none"})
	if want := `[{"name":"b","rate":0.0} {"name":"a","messages":7}]`; err != nil || fmt.Sprintf("%s", got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	without := openControl(t, controlBroker(t, options(t))).(broker.QueueObjecter)
	if _, err := without.QueueObjects(soon(t), []string{"a"}); !errors.Is(err, broker.ErrUnsupported) {
		t.Errorf("without a management API: %v", err)
	}
}

func TestManagementThatEndsNowhere(t *testing.T) {
	t.Parallel()
	management := fakeManagement(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[{"name":"q`+r.FormValue("page")+`","messages_ready":1}],"page_count":1000000}`)
	})
	s := stats(t, management, "not-listed")
	if got, want := len(s.Queues), 11; got != want {
		t.Errorf("stats has %d queues, want those of %d pages and the one asked for", got, want-1)
	}
	if q := s.Queues[0]; q.Name != "not-listed" || !q.Missing { // as AMQP says
		t.Errorf("first queue = %+v, want a missing one", q)
	}
}

// TestManagementThatCannotBeUsed leaves a QueueStats call what AMQP tells, and says why.
func TestManagementThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, code) }
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
	}
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"wrong password": {status(401), `user "monitor" was refused (401 Unauthorized): check its password`},
		"no tag":         {status(403), "that it has the tag monitoring"},
		"unknown vhost":  {status(404), `it does not know vhost "/"`},
		"broken":         {status(500), "it answers 500 Internal Server Error"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://user:"+secret+"@elsewhere.example/", http.StatusFound)
		}, "it answers 302 Found"},
		"a page":        {text("<html>"), "its answer is not what the management API says"},
		"nothing":       {text(""), "its answer is not what the management API says"},
		"another shape": {text(`{"rows":[]}`), "its answer is no list of queues"},
		"a number":      {text(`5`), "its answer is no list of queues"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "[")
		}, "unexpected EOF"},
		"silent": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "context deadline exceeded"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			space := strings.Repeat(" ", 1<<20)
			for range 18 {
				if _, err := io.WriteString(w, space); err != nil {
					return
				}
			}
		}, "its answer is longer than 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			management := fakeManagement(t, test.answer)
			s := stats(t, management, "umbel-test.no-such-queue")
			if s.Source != "passive declare" || len(s.Queues) != 1 || !s.Queues[0].Missing {
				t.Errorf("stats by %s = %+v, want what AMQP says", s.Source, s.Queues)
			}
			u, err := url.Parse(management)
			if err != nil {
				t.Fatalf("parse URL: %v", err)
			}
			expectWarning(t, s, "The management API at http://"+u.Host+" cannot be used: ")
			expectWarning(t, s, test.want)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		s := stats(t, "http://monitor:"+secret+"@"+closedPort(t))
		expectWarning(t, s, "connection refused")
	})
}

// TestNewQueueHasNoStatistics asks AMQP for what the management API does not know yet.
func TestNewQueueHasNoStatistics(t *testing.T) {
	t.Parallel()
	o := options(t)
	queue := o.ControlExchange + ".q"
	declareQueue(t, queue, false, nil)
	s := stats(t, fakeManagement(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"name":"`+queue+`","type":"classic"},{"name":"umbel-test.new"}]`)
	}), queue)
	expectEqual(t, "queues", s.Queues, []broker.Queue{
		{Name: queue, Type: "classic", Ready: new(int64(0)), Consumers: new(int64(0))}, {Name: "umbel-test.new"},
	})
}

// TestManagementOfTheBroker reads from the real API, by the broker's own login.
func TestManagementOfTheBroker(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(testenv.Management(t))
	if err != nil {
		t.Fatalf("parse URL: %v", err)
	}
	u.User = nil
	o := options(t)
	o.ManagementURL = u.String()
	queue := o.ControlExchange + ".q"
	ch := declareQueue(t, queue, false, nil)
	c := openControl(t, controlBroker(t, o))
	for range 5 {
		if err := c.Publish(soon(t), queue, broker.Publishing{}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	for range 2 {
		if _, _, err := ch.Get(queue, false); err != nil {
			t.Fatalf("get a message: %v", err)
		}
	}
	var s broker.QueueStats
	until(t, "the API does not tell of all", func() bool {
		if s, err = c.QueueStats(soon(t), []string{queue}); err != nil {
			t.Fatalf("stats: %v", err)
		}
		q := s.Queues[0]
		return is(q.Published, 5) && is(q.Delivered, 2) && is(q.Unacked, 2) && is(q.Consumers, 0)
	})
	q := s.Queues[0]
	if !is(q.Ready, 3) || q.Type != "classic" || q.Durable == nil || !*q.Durable {
		t.Errorf("queue = %+v, want 3 ready in a durable classic one", q)
	}
	if s.Source != "management API" || s.Broker.Version == "" || s.Broker.Memory == nil || s.Broker.Clients == nil {
		t.Errorf("broker by %s = %+v, want all of it", s.Source, s.Broker)
	}
}

// is says whether n is known and want.
func is(n *int64, want int64) bool { return n != nil && *n == want }

func TestBadManagementURL(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"another scheme": "amqp://u:" + secret + "@h",
		"no scheme":      "u:" + secret + "@h:15672",
		"no host":        "http://",
		"port":           "http://u:" + secret + "@h:port",
		"escape":         "http://u:%" + secret + "@h",
		"control":        "http://u:" + secret + "@h\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rabbitmq.New(rabbitmq.Options{URL: "amqp://", ManagementURL: address})
			expectError(t, err, secret, "management URL")
		})
	}
}

func FuzzParseQueues(f *testing.F) {
	f.Add([]byte(`{"page_count":2,"items":[{"name":"a","messages_ready":1,"message_stats":{"publish":3.0}}]}`))
	f.Add([]byte(`[{"name":"a","consumers":1e400,"arguments":{"x-max-priority":"9"}},7,null]`))
	f.Add([]byte(`{"items":null}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		list, _, err := rabbitmq.ParseQueues(answer)
		if err != nil && list != nil {
			t.Errorf("%d queues beside error %v", len(list), err)
		}
		for _, q := range list {
			counts := map[string]*int64{
				"ready": q.Ready, "unacked": q.Unacked, "consumers": q.Consumers, "published": q.Published,
				"delivered": q.Delivered, "acked": q.Acked, "redelivered": q.Redelivered, "priority": q.MaxPriority,
			}
			for _, what := range slices.Sorted(maps.Keys(counts)) {
				if n := counts[what]; n != nil && *n < 0 {
					t.Errorf("%s = %d", what, *n)
				}
			}
			if q.Name == "" {
				t.Error("a queue has no name")
			}
		}
		if len(list) > 0 && !json.Valid(answer) {
			t.Error("queues were read from what is no JSON")
		}
	})
}
