package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/web/auth"
)

// several are two clusters, served.
type several struct {
	*testing.T
	url     string
	brokers map[string]*inproc.Broker
}

// newSeveral serves the clusters shop and billing as o says.
func newSeveral(t *testing.T, o dashboard.Options) *several {
	t.Helper()
	s := &several{T: t, brokers: map[string]*inproc.Broker{}}
	var list []dashboard.Cluster
	for _, name := range []string{"shop", "billing"} {
		s.brokers[name] = inproc.New(inproc.Options{})
		list = append(list, dashboard.Cluster{Name: name, Options: dashboard.Options{Broker: s.brokers[name]}})
	}
	u, err := dashboard.NewClusters(o, list)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(u)
	s.url = server.URL + strings.TrimSuffix(o.Prefix, "/")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		server.Close()
		if err := u.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s.until("ready", func() bool {
		status, _ := s.send(http.MethodGet, "/readyz", "", "")
		return status == http.StatusOK
	})
	return s
}

func (s *several) until(what string, is func() bool) {
	s.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("not %s after a minute", what)
		}
	}
}

// send sends a request as a user, or with a token, and returns status and body.
func (s *several) send(method, path, as, body string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	s.identify(r.Header, as)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if r.Header.Set("Content-Type", "application/json"); strings.Contains(body, "=") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (s *several) identify(h http.Header, as string) {
	switch {
	case strings.HasPrefix(as, "umbel_"):
		h.Set("Authorization", "Bearer "+as)
	case as != "":
		r := http.Request{Header: h}
		r.SetBasicAuth(as, "pw-"+as)
	}
}

// socket opens one, and returns the status and what it shows first.
func (s *several) socket(path, as string) (int, string) {
	s.Helper()
	h := http.Header{}
	s.identify(h, as)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+path, &websocket.DialOptions{HTTPHeader: h})
	if err != nil {
		if res == nil {
			s.Fatal(err)
		}
		return res.StatusCode, ""
	}
	defer conn.CloseNow() //nolint:errcheck // it is done
	conn.SetReadLimit(16 << 20)
	var r livetest.Reader
	for {
		m, _, err := r.Read(ctx, conn)
		if err != nil {
			s.Fatal(err)
		}
		if m.Frame {
			return res.StatusCode, fmt.Sprint(m)
		}
	}
}

// signedIn are users of whom ann is admin of both clusters, cas operator of shop, and bob viewer of billing.
func signedIn() *auth.Options {
	return &auth.Options{
		Users: []string{"ann:pw-ann", "bob:pw-bob", "cas:pw-cas", "dan:pw-dan"},
		Roles: auth.Roles{Admin: []string{"ann"}, Operator: []string{"shop:cas"}, Viewer: []string{"billing:bob"}, Default: auth.NoRole},
	}
}

// listed is what the API says to a user of each cluster.
func (s *several) listed(as string) map[string]map[string]any {
	s.Helper()
	_, body := s.send(http.MethodGet, "/api/v1/clusters", as, "")
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		s.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, i := range list.Items {
		name, _ := i["name"].(string)
		all[name] = i
	}
	return all
}

// token makes an API token of a viewer of all clusters.
func (s *several) token() string {
	s.Helper()
	_, page := s.send(http.MethodPost, "/tokens", "ann", "name=t&role=viewer&days=1")
	return regexp.MustCompile(`umbel_[a-z2-7]{30,}`).FindString(page)
}

// receive has a cluster hear of a task.
func (s *several) receive(cluster, id, name string, second int) {
	s.Helper()
	event := fmt.Sprintf(`{"type":"task-received","uuid":%q,"name":%q,"hostname":"w@%s","pid":1,"clock":%d,"timestamp":%d,"utcoffset":0,"args":"('secret',)"}`,
		id, name, cluster, 100-second, 1_790_000_000+second)
	if err := s.brokers[cluster].Publish(s.Context(), broker.Message{RoutingKey: "task.received", ContentType: "application/json", Body: []byte(event)}); err != nil {
		s.Fatal(err)
	}
}

// found are the IDs of the tasks that a user finds in all clusters, or the status and the body of another answer, and what is missing.
func (s *several) found(as, q string) (ids string, problems []string) {
	s.Helper()
	status, body := s.send(http.MethodGet, "/api/v1/tasks?q="+url.QueryEscape(q), as, "")
	var list struct {
		Items    []struct{ ID, Cluster string }
		Problems []string
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK {
		return fmt.Sprintf("%d %s", status, body), nil
	}
	var all []string
	for _, i := range list.Items {
		if !strings.HasPrefix(i.ID, i.Cluster+"-") {
			s.Errorf("%s is said to be of %s", i.ID, i.Cluster)
		}
		all = append(all, i.ID)
	}
	return strings.Join(all, " "), list.Problems
}
