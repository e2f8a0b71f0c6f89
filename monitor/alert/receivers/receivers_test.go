package receivers_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
)

func notification() receivers.Notification {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	return receivers.Notification{
		ID: "key-1", At: at, Summary: "Firing: a\r\nBcc: everybody@example.com",
		Alerts: []receivers.Alert{{Status: "firing", Rule: "a", Subject: "<!channel> & co", Text: "7 failures of <!channel> & co\r\n.\r\nQUIT", Start: at, Link: "https://umbel.example/tasks"}},
	}
}

func read(t *testing.T, text string) receivers.Config {
	t.Helper()
	c, err := receivers.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c receivers.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return c.Receivers[0].Send(ctx, notification())
}

func TestAWebhookIsSigned(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, body = r, must(io.ReadAll(r.Body))
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	if err := send(t, read(t, "receivers: [{name: a, webhook: '"+s.URL+"/x?token=t', secret: key}]")); err != nil {
		t.Fatal(err)
	}
	sum := "sha256=" + receivers.Sign("key", got.Header.Get(receivers.TimeHeader), body)
	if got.Header.Get(receivers.SignatureHeader) != sum || got.Header.Get(receivers.KeyHeader) != "key-1" || got.URL.RawQuery != "token=t" {
		t.Errorf("headers %v of %s, want the signature %s and the key", got.Header, got.URL, sum)
	}
	var n receivers.Notification
	if err := json.Unmarshal(body, &n); err != nil || n.Alerts[0].Text != notification().Alerts[0].Text {
		t.Errorf("body %s: %v", body, err)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestAWebhookThatFailsIsTriedAgainIfThatCanHelp(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{400: true, 404: true, 302: true, 429: false, 500: false, 503: false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
		}))
		err := send(t, read(t, "receivers: [{name: a, webhook: '"+s.URL+"/secret?token=t'}]"))
		s.Close()
		if err == nil || errors.Is(err, receivers.ErrPermanent) != permanent || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v, want permanent %v, without the path", status, err, permanent)
		}
		err = send(t, read(t, "receivers: [{name: a, webhook: '"+s.URL+"/secret?token=t'}]"))
		if err == nil || errors.Is(err, receivers.ErrPermanent) || strings.Contains(err.Error(), "secret") {
			t.Errorf("closed: %v, want it to be tried again, without the path", err)
		}
	}
}

func TestSlackGetsPlainText(t *testing.T) {
	t.Parallel()
	var m struct{ Text string }
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _ = json.NewDecoder(r.Body).Decode(&m) }))
	defer s.Close()
	if err := send(t, read(t, "receivers: [{name: a, slack: '"+s.URL+"/services/T/B/x'}]")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(m.Text, "<!channel>") || !strings.Contains(m.Text, "&lt;!channel&gt; &amp; co") || !strings.Contains(m.Text, "https://umbel.example/tasks") {
		t.Errorf("text %q mentions everybody, or lacks what happened", m.Text)
	}
}

// mailServer takes one mail and returns what was sent. With refuse, it refuses recipients.
func mailServer(t *testing.T, refuse string) (address string, said <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	all := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // a test
		in := bufio.NewScanner(conn)
		answer := func(s string) { _, _ = io.WriteString(conn, s+"\r\n") }
		answer("220 mail.example")
		var log strings.Builder
		for data := false; in.Scan(); {
			line := in.Text()
			log.WriteString(line + "\n")
			switch {
			case data && line == ".":
				data = false
				answer("250 taken")
			case data:
			case line == "DATA":
				data = true
				answer("354 go on")
			case strings.HasPrefix(line, "RCPT") && refuse != "":
				answer(refuse)
			case line == "QUIT":
				answer("221 bye")
				all <- log.String()
				return
			default:
				answer("250 ok")
			}
		}
		all <- log.String()
	}()
	return l.Addr().String(), all
}

func TestMailHoldsNoInjectedHeader(t *testing.T) {
	t.Parallel()
	address, said := mailServer(t, "")
	c := read(t, "receivers: [{name: a, email: {server: '"+address+"', from: 'Ümbel <umbel@example.com>', to: [ann@example.com, bob@example.com]}}]")
	if err := send(t, c); err != nil {
		t.Fatal(err)
	}
	got := <-said
	head, body, _ := strings.Cut(got, "\n\n")
	for _, want := range []string{"MAIL FROM:<umbel@example.com>", "RCPT TO:<ann@example.com>", "RCPT TO:<bob@example.com>", "Message-ID: <key-1@example.com>", "Subject: "} {
		if !strings.Contains(head, want) {
			t.Errorf("the mail lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\nBcc:") || strings.Count(got, "RCPT") != 2 {
		t.Errorf("a header was injected:\n%s", got)
	}
	encoded, _, _ := strings.Cut(body, "\n.\n")
	text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(encoded, "\n", ""))
	if err != nil || !strings.Contains(string(text), "7 failures of <!channel> & co") {
		t.Errorf("body %q: %v", text, err)
	}
}

func TestMailThatIsRefusedForGoodIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	for refuse, permanent := range map[string]bool{"550 no such user": true, "451 later": false} {
		address, _ := mailServer(t, refuse)
		err := send(t, read(t, "receivers: [{name: a, email: {server: '"+address+"', from: a@example.com, to: [b@example.com]}}]"))
		if err == nil || errors.Is(err, receivers.ErrPermanent) != permanent {
			t.Errorf("%s: %v, want permanent %v", refuse, err, permanent)
		}
	}
}

func TestACommandGetsTheNotificationOnItsInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "input")
	if err := send(t, read(t, `receivers: [{name: a, command: [sh, -c, 'cat > "$0"', '`+file+`']}]`)); err != nil {
		t.Fatal(err)
	}
	var n receivers.Notification
	if err := json.Unmarshal(must(os.ReadFile(file)), &n); err != nil || n.ID != "key-1" {
		t.Errorf("input %+v: %v", n, err)
	}
	err := send(t, read(t, `receivers: [{name: a, command: [sh, -c, 'echo no pager >&2; exit 3']}]`))
	if err == nil || !strings.Contains(err.Error(), "no pager") || errors.Is(err, receivers.ErrPermanent) {
		t.Errorf("failed command: %v, want what it says", err)
	}
	if err := send(t, read(t, `receivers: [{name: a, command: [no-such-program-at-all]}]`)); !errors.Is(err, receivers.ErrPermanent) {
		t.Errorf("missing command: %v, want %v", err, receivers.ErrPermanent)
	}
}

func TestWrongFilesAreExplained(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"receivers: [{name: a}]":                                         "exactly one of",
		"receivers: [{name: a, webhook: 'ftp://x'}]":                     "http://",
		"receivers: [{name: '', webhook: 'http://x'}]":                   "a name has",
		"receivers: [{name: a, slack: 'http://x', secret: hunter2}]":     "only a webhook",
		"receivers: [{name: a, webhook: 'http://x', hook: hunter2}]":     "not as expected",
		"receivers: {name: hunter2}":                                     "not as expected",
		"receivers: [":                                                   "no YAML",
		"url: umbel":                                                     "url",
		"receivers: [{name: a, command: ['']}]":                          "empty",
		"receivers: [{name: a, email: {server: x, from: a@b, to: [c]}}]": "host:port",
		"receivers: [{name: a, email: {server: 'x:25', from: a@b.c, to: [\"a@b.c\\r\\nBcc: d@e.f\"]}}]": "mail address",
		"receivers: [{name: a, webhook: 'http://x'}, {name: a, webhook: 'http://y'}]":                   "two receivers",
	} {
		_, err := receivers.Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q on one line, without secrets", text, err, want)
		}
	}
	if c, err := receivers.Read(strings.NewReader("")); err != nil || len(c.Receivers) != 0 {
		t.Errorf("an empty file: %+v, %v", c, err)
	}
}
