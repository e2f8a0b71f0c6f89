package flower_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndFlowersActionsOnLostWorkers asks Flower and Umbel to change workers that scale themselves, end, do not reply, and
// whose broker is away.
func TestEndToEndFlowersActionsOnLostWorkers(t *testing.T) { //nolint:tparallel // one after the other, on one worker
	t.Parallel()
	testenv.Flower(t)
	broker := ownRedis(t)
	s := newShop(t, broker, "")
	for _, name := range []string{"scaled@shop", "end1@shop", "end2@shop"} {
		s.run(t, nil, "-m", "celery", "-A", "shop", "worker", "-n", name, "--autoscale=3,1", "-E", "--without-gossip", "--without-mingle")
	}
	p := s.pair(t, "")
	s.registered(t)
	for _, name := range []string{"scaled@shop", "end1@shop", "end2@shop"} {
		s.online(t, name, true)
	}
	for _, c := range []call{
		{name: "autoscale", path: "/api/worker/pool/autoscale/scaled@shop?min=1&max=2"},
		{name: "grow a pool that scales itself", path: "/api/worker/pool/grow/scaled@shop"},
	} {
		c.method = http.MethodPost
		t.Run(c.name, func(t *testing.T) { s.compare(t, c) })
	}

	byFlower := post(t, p.flower, "/api/worker/shutdown/end1@shop")
	byUmbel := post(t, p.umbel, "/api/worker/shutdown/end2@shop")
	for _, difference := range compare(byFlower, byUmbel) {
		t.Error(difference)
	}
	s.online(t, "end1@shop", false)
	s.online(t, "end2@shop", false)
	t.Run("grow the pool of a worker that has ended", func(t *testing.T) {
		s.compare(t, call{method: http.MethodPost, path: "/api/worker/pool/grow/end1@shop", silent: true})
	})

	stopRedis(t, broker)
	for _, path := range actingPaths() {
		c := call{method: http.MethodPost, path: path + "?queue=q&min=1&max=2&workername=w1@shop&ratelimit=1/m"}
		answer, err := ask(t.Context(), p.umbel, c)
		if err != nil || answer.line() != "503 Broker or result backend unavailable" { // Flower hangs
			t.Errorf("%s without a broker: %s, %v", path, answer.line(), err)
		}
	}
	startRedis(t, broker)
	eventually(t, "Umbel sends again", func() error {
		return statusOf(t, p.umbel, "/api/task/revoke/marker", http.StatusOK)
	})
	sent, err := ask(t.Context(), p.umbel, call{path: "/api/v1/commands?state=pending&state=in_flight"})
	if err != nil || sent.status != http.StatusOK || !strings.Contains(sent.body, `"items":[]`) {
		t.Errorf("commands that wait to be sent: %s, %v", sent.line(), err)
	}
	all, err := ask(t.Context(), p.umbel, call{path: "/api/v1/commands?limit=100"})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(all.body, "Revoke task x"); n > 0 && !strings.Contains(all.body, `"expired"`) {
		t.Errorf("a request that was answered 503 was sent: %s", all.body)
	}
}

// post makes a POST request.
func post(t *testing.T, url, path string) answer {
	t.Helper()
	a, err := ask(t.Context(), url, call{method: http.MethodPost, path: path})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// statusOf is nil if a POST request gets a status.
func statusOf(t *testing.T, url, path string, want int) error {
	t.Helper()
	a, err := ask(t.Context(), url, call{method: http.MethodPost, path: path})
	if err == nil && a.status != want {
		err = errors.New(a.line())
	}
	return err
}

// online waits until both show that a worker is online, or is not.
func (s *shop) online(t *testing.T, name string, want bool) {
	t.Helper()
	p := s.pair(t, "")
	for _, url := range []string{p.flower, p.umbel} {
		eventually(t, fmt.Sprintf("%s shows %s online: %v", url, name, want), func() error {
			a, err := ask(t.Context(), url, call{path: "/api/workers?status=1"})
			if err == nil && !strings.Contains(a.body, fmt.Sprintf("%q: %v", name, want)) {
				err = errors.New(a.line())
			}
			return err
		})
		if !want {
			continue
		}
		eventually(t, fmt.Sprintf("%s has inspected %s", url, name), func() error {
			a, err := ask(t.Context(), url, call{path: "/api/workers?refresh=1&workername=" + name})
			if err == nil && a.status != http.StatusOK {
				err = errors.New(a.line())
			}
			return err
		})
	}
}

// stopRedis ends the Redis at an address.
func stopRedis(t *testing.T, address string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", hostOf(t, address))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("SHUTDOWN NOSAVE\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	_, _ = bufio.NewReader(c).ReadString('\n') // until it closes the connection
}

// startRedis starts a Redis at the address of one that has ended.
func startRedis(t *testing.T, address string) {
	t.Helper()
	_, port, err := net.SplitHostPort(hostOf(t, address))
	if err != nil {
		t.Fatal(err)
	}
	start(t, nil, testenv.RedisServer(t), "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
