package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Whatever a client says to the demo's Redis, the process goes on.
func TestRedisOfTheDemoOutlivesItsClients(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo", "--redis-listen", "127.0.0.1:0")
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(d.await(t, "broker ready")), &ready); err != nil {
		t.Fatalf("read log line: %v", err)
	}
	broker, err := url.Parse(ready.URL)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) string {
		t.Helper()
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", broker.Host)
		if err != nil {
			t.Fatalf("after %.40q: %v", text, err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, text); err != nil {
			return "" // refused before the end
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%.40q: %v", text, err)
		}
		return strings.TrimSuffix(line, "\r\n")
	}
	for _, text := range []string{
		"*1\r\n$9223372036854775807\r\n", "*1\r\n$1099511627776\r\n", "*9223372036854775807\r\n$4\r\nPING\r\n",
		"*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n$-9223372036854775808\r\n", "PING\r\n", "*1\r\n$4\r\nPINGxx", "\r\n", "$5\r\n",
		"*1\r\n*1\r\n$4\r\nPING\r\n", strings.Repeat("*", 100_000) + "\r\n",
	} {
		if got := say(text); !strings.HasPrefix(got, "-ERR Protocol error") && got != "" && !strings.HasPrefix(text, "*1\r\n$4") {
			t.Errorf("%.40q was answered with %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"*1\r\n$4\r\nPING\r\n": "+PONG",
		"*1\r\n$4\r\nping\r\n": "+PONG",
		"*1\r\n$0\r\n\r\n":     "-ERR unknown command",
		"*4\r\n$8\r\nSETRANGE\r\n$1\r\nk\r\n$19\r\n9223372036854775000\r\n$1\r\nx\r\n": "-ERR unknown command",
	} {
		if got := say(text); !strings.HasPrefix(got, want) {
			t.Errorf("%q was answered with %q, want %s", text, got, want)
		}
	}
	d.overview(t)
}

// A proxy that lets the header of its clients through names two users.
func TestOneUserAtMost(t *testing.T) {
	t.Parallel()
	d := start(t, nil, "demo", "--user-header", "X-Forwarded-User")
	for name, tc := range map[string]struct {
		users []string
		want  int
	}{
		"nobody":            {nil, http.StatusOK},
		"one":               {[]string{"ada"}, http.StatusOK},
		"two":               {[]string{"ada", "ada"}, http.StatusBadRequest},
		"long":              {[]string{strings.Repeat("a", 257)}, http.StatusBadRequest},
		"as long as may be": {[]string{strings.Repeat("a", 256)}, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-Forwarded-User"] = tc.users
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s: status %d, want %d", name, resp.StatusCode, tc.want)
		}
	}
}
