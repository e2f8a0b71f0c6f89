package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// The URLs and their meanings are what Kombu makes of them, but for what it does not verify.
func TestURL(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"redis://":                              "redis://localhost:6379/0",
		"redis://h":                             "redis://h:6379/0",
		"redis://h/":                            "redis://h:6379/0",
		"redis://h:1234/3":                      "redis://h:1234/3",
		"redis://:secret@h/3":                   "redis://:***@h:6379/3",
		"redis://bob:secret@h":                  "redis://bob:***@h:6379/0",
		"redis://bob@h":                         "redis://bob:***@h:6379/0",
		"redis://b%40b:se%2Fcret@h":             "redis://b@b:***@h:6379/0",
		"redis://:p%w^d@@h/1":                   "redis://:***@h:6379/1",
		"redis://[::1]:6380/2":                  "redis://[::1]:6380/2",
		"redis://h?socket_timeout=5&db=7":       "redis://h:6379/0",
		"redis://h?ssl_cert_reqs=CERT_NONE":     "rediss://h:6379/0",
		"REDISS://h:6380/1":                     "rediss://h:6380/1",
		"rediss://h?ssl_check_hostname=false":   "rediss://h:6379/0",
		"redis://u:secret@a;\tredis://b/1;\n":   "redis://u:***@a:6379/0;redis://b:6379/1",
		"redis+socket:///run/redis.sock":        "redis+socket:///run/redis.sock?virtual_host=0",
		"redis+socket://:secret@/r%20s.sock":    "redis+socket://:***@/r s.sock?virtual_host=0",
		"redis+socket:///s?virtual_host=4&x=y":  "redis+socket:///s?virtual_host=4",
		"sentinel://:secret@a:1/2;sentinel://b": "sentinel://:***@a:1;sentinel://b:26379/2",
	}
	for url, want := range tests {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			b, err := redis.New(redis.Options{URL: url, MasterName: "main"})
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
		"one slash":                   {"redis:/bob:secret@host", "cannot be read"},
		"another broker":              {"amqp://:secret@host", `scheme "amqp"`},
		"slash in the password":       {"redis://bob:1/secret@host", "percent-encoded"},
		"question in the password":    {"redis://bob:1?secret@host", "percent-encoded"},
		"hash in the password":        {"redis://bob:1#secret@host", "percent-encoded"},
		"port that is no number":      {"redis://bob:secret@host:https", "cannot be read"},
		"port too great":              {"redis://bob:secret@host:65536", "port outside 1 to 65535"},
		"database that is no number":  {"redis://bob:secret@host/shop", "database that is no number"},
		"negative database":           {"redis://bob:secret@host/-1", "database that is no number"},
		"unknown trust":               {"redis://bob:secret@host?ssl_cert_reqs=maybe", `ssl_cert_reqs "maybe"`},
		"unreadable query":            {"redis://bob:secret@host?a=%zz", "cannot be read"},
		"bad second URL":              {"redis://bob:secret@host;host2", "cannot be read"},
		"missing authorities":         {"rediss://bob:secret@host?ssl_ca_certs=/no/such/file", "/no/such/file"},
		"socket without a path":       {"redis+socket://bob:secret@", "no path of a socket"},
		"socket with a bad database":  {"redis+socket:///secret?virtual_host=x", "database that is no number"},
		"sentinels and other schemes": {"sentinel://bob:secret@a;redis://b", "mixes sentinel://"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := redis.New(redis.Options{URL: test.url, MasterName: "main"})
			expectError(t, err, "secret", test.want)
		})
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	const url = "redis://bob:secret@host"
	tests := map[string]struct {
		options redis.Options
		want    string
	}{
		"sentinel without master": {redis.Options{URL: "sentinel://bob:secret@host"}, "needs the name of the master"},
		"TLS without rediss":      {redis.Options{URL: url, TLS: broker.TLS{ServerName: "x"}}, "TLS options need a rediss://"},
		"TLS on a socket":         {redis.Options{URL: "redis+socket:///secret", TLS: broker.TLS{ServerName: "x"}}, ""},
		"certificate only":        {redis.Options{URL: "rediss://:secret@h", TLS: broker.TLS{CertFile: "x"}}, "go together"},
		"steps without 0":         {redis.Options{URL: url, PrioritySteps: []int{3, 6}}, "do not begin with 0"},
		"negative step":           {redis.Options{URL: url, PrioritySteps: []int{-1, 0}}, "outside 0 to 9"},
		"step too great":          {redis.Options{URL: url, PrioritySteps: []int{0, 10}}, "outside 0 to 9"},
		"negative visibility":     {redis.Options{URL: url, VisibilityTimeout: -time.Second}, "visibility timeout"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := redis.New(test.options)
			expectError(t, err, "bob:secret", test.want)
		})
	}
}

func TestStringHidesPasswords(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://:secret@h", "rediss://bob:secret@h/1;rediss://bob:secret@i", "redis+socket://:secret@/s",
		"sentinel://:secret@a;sentinel://:secret@b",
	} {
		b, err := redis.New(redis.Options{URL: url, MasterName: "main", SentinelPassword: "secret"})
		if err != nil {
			t.Fatalf("new broker: %v", err)
		}
		if strings.Contains(b.String(), "secret") {
			t.Errorf("%s shows the password", b)
		}
	}
}
