package locks_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/locks/lockstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type memory struct{ *locks.Memory }

func (m memory) Set(_ *testing.T, key, value string, ttl time.Duration) {
	m.Memory.Set(key, value, until(ttl), false)
}

// until is when a TTL that begins now ends, zero if it is 0.
func until(ttl time.Duration) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(ttl)
}

func (m memory) Get(t *testing.T, key string) (string, bool) {
	t.Helper()
	list, err := m.Read(t.Context(), []string{key})
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Value, !list[0].Missing
}

func TestMemory(t *testing.T) {
	t.Parallel()
	m := locks.NewMemory(locks.DefaultPatterns(), time.Now)
	lockstest.Run(t, m, memory{m})
}
