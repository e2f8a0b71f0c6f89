package dashboard_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

func TestLocksAreInTheFirstRedisThatIsNamed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options dashboard.Options
		want    string // URL, empty for none
		err     string
	}{
		"none":            {dashboard.Options{BrokerURL: "amqp://a"}, "", ""},
		"broker":          {dashboard.Options{BrokerURL: "redis://a:1/2", ResultBackend: "redis://b:1/2"}, "redis://a:1/2", ""},
		"result backend":  {dashboard.Options{BrokerURL: "amqp://a", ResultBackend: "rediss://b:1/2"}, "rediss://b:1/2", ""},
		"its own":         {dashboard.Options{BrokerURL: "redis://a:1/2", LocksURL: "redis://:word@c:1/2"}, "redis://:***@c:1/2", ""},
		"switched off":    {dashboard.Options{BrokerURL: "redis://a:1/2", LocksURL: "none"}, "", ""},
		"sentinels":       {dashboard.Options{BrokerURL: "sentinel://a:1", Redis: redis.Options{MasterName: "m"}}, "sentinel://a:1/0", ""},
		"no Redis":        {dashboard.Options{LocksURL: "memcached://a"}, "", "only those in Redis"},
		"no scheme":       {dashboard.Options{LocksURL: "user:word@a"}, "", "has no scheme"},
		"every key":       {dashboard.Options{LocksURL: "redis://a", LocksPatterns: []string{"*"}}, "", "matches every key"},
		"patterns for no": {dashboard.Options{LocksPatterns: []string{"a*"}}, "", "need a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := dashboard.Locks(tt.options)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "word") {
					t.Fatalf("error = %v, want %q without the password", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if s != nil {
				got = s.String()
				_ = s.Close()
			}
			if got != tt.want {
				t.Errorf("locks in %q, want %q", got, tt.want)
			}
		})
	}
}
