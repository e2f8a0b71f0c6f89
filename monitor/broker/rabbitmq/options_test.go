package rabbitmq_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

// The URLs and their meanings are what Kombu 5.6 makes of them.
func TestURL(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"amqp://":                          "amqp://guest:***@localhost:5672/",
		"amqp://localhost":                 "amqp://guest:***@localhost:5672/",
		"amqp://localhost/":                "amqp://guest:***@localhost:5672/",
		"amqp://localhost//":               "amqp://guest:***@localhost:5672/",
		"amqp://h///":                      "amqp://guest:***@h:5672/%2F%2F",
		"amqp://bob:pw@h/foo":              "amqp://bob:***@h:5672/foo",
		"amqp://bob:pw@h:1234/%2Ffoo":      "amqp://bob:***@h:1234/%2Ffoo",
		"amqp://bob@h":                     "amqp://bob:***@h:5672/",
		"amqp://:pw@h":                     "amqp://guest:***@h:5672/",
		"amqp://b%40b:p%2Fw@h/a%20b":       "amqp://b@b:***@h:5672/a%20b",
		"amqp://bob:p%w^d@@h/v":            "amqp://bob:***@h:5672/v",
		"amqp://h/a/b":                     "amqp://guest:***@h:5672/a%2Fb",
		"amqp://h/a+b":                     "amqp://guest:***@h:5672/a+b",
		"amqp://[::1]:5673/v":              "amqp://guest:***@[::1]:5673/v",
		"amqp://h?heartbeat=5&confirm=1":   "amqp://guest:***@h:5672/",
		"amqp://h?ssl=true":                "amqps://guest:***@h:5671/",
		"amqp://h?ssl_cert_reqs=CERT_NONE": "amqps://guest:***@h:5671/",
		"pyamqp://h":                       "amqp://guest:***@h:5672/",
		"AMQPS://h/v":                      "amqps://guest:***@h:5671/v",
		"amqp://u:p@a;\tamqps://u:p@b;\n":  "amqp://u:***@a:5672/;amqps://u:***@b:5671/",
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			b, err := rabbitmq.New(rabbitmq.Options{URL: url})
			if err != nil {
				t.Fatalf("new broker: %v", err)
			}
			if got := b.String(); got != want {
				t.Errorf("URL = %s, want %s", got, want)
			}
		})
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ url, want string }{
		"empty":                       {"", "broker URL is empty"},
		"only separators":             {" ; ;", "broker URL is empty"},
		"no scheme":                   {"bob:secret@host", "cannot be read"},
		"one slash":                   {"amqp:/bob:secret@host", "cannot be read"},
		"no scheme, but a later one":  {"bob:secret@host?next=amqp://x", "cannot be read"},
		"another broker":              {"redis://:secret@host", `scheme "redis"`},
		"slash in the password":       {"amqp://bob:1/secret@host", "percent-encoded"},
		"question in the password":    {"amqp://bob:1?secret@host", "percent-encoded"},
		"hash in the password":        {"amqp://bob:1#secret@host", "percent-encoded"},
		"port that is no number":      {"amqp://bob:secret@host:https", "cannot be read"},
		"port too great":              {"amqp://bob:secret@host:65536", "port outside 1 to 65535"},
		"port 0":                      {"amqp://bob:secret@host:0", "port outside 1 to 65535"},
		"heartbeat that is no number": {"amqp://bob:secret@host?heartbeat=soon", `heartbeat "soon"`},
		"heartbeat too great":         {"amqp://bob:secret@host?heartbeat=65536", "heartbeat"},
		"unknown trust":               {"amqp://bob:secret@host?ssl_cert_reqs=maybe", `ssl_cert_reqs "maybe"`},
		"unreadable query":            {"amqp://bob:secret@host?a=%zz", "cannot be read"},
		"bad second URL":              {"amqp://bob:secret@host;host2", "cannot be read"},
		"missing authorities":         {"amqps://bob:secret@host?cacertfile=/no/such/file", "/no/such/file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rabbitmq.New(rabbitmq.Options{URL: test.url})
			expectError(t, err, "secret", test.want)
		})
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	noPEM := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(noPEM, nil, 0o600); err != nil {
		t.Fatalf("write file: %v", err)
	}
	const url, secureURL = "amqp://bob:secret@host", "amqps://bob:secret@host"
	tests := map[string]struct {
		options rabbitmq.Options
		want    string
	}{
		"expiry too short":      {rabbitmq.Options{URL: url, Queue: "q", Expires: time.Millisecond}, "queue expiry 1ms"},
		"expiry too long":       {rabbitmq.Options{URL: url, Queue: "q", Expires: 50 * 24 * time.Hour}, "queue expiry 1200h"},
		"reserved queue":        {rabbitmq.Options{URL: url, Queue: "amq.mine"}, `queue name "amq.mine" starts with amq.`},
		"long queue":            {rabbitmq.Options{URL: url, Queue: strings.Repeat("q", 256)}, "queue name is longer than 255"},
		"long exchange":         {rabbitmq.Options{URL: url, Exchange: strings.Repeat("q", 256)}, "event exchange name is longer"},
		"long control exchange": {rabbitmq.Options{URL: url, ControlExchange: strings.Repeat("q", 249)}, "control exchange name is longer"},
		"TLS without amqps":     {rabbitmq.Options{URL: url, TLS: broker.TLS{ServerName: "x"}}, "TLS options need an amqps:// URL"},
		"certificate only":      {rabbitmq.Options{URL: secureURL, TLS: broker.TLS{CertFile: "x"}}, "go together"},
		"missing authorities":   {rabbitmq.Options{URL: secureURL, TLS: broker.TLS{CAFile: "/no/such/file"}}, "/no/such/file"},
		"authorities not PEM":   {rabbitmq.Options{URL: secureURL, TLS: broker.TLS{CAFile: noPEM}}, "holds no PEM certificate"},
		"missing certificate": {
			rabbitmq.Options{URL: secureURL, TLS: broker.TLS{CertFile: "/no/such/file", KeyFile: "/no/such/key"}}, "/no/such/file",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := rabbitmq.New(test.options)
			expectError(t, err, "secret", test.want)
		})
	}
}
