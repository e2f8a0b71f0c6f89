package idempotency_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// memory is what the locks need of a Redis, inside the process and on the clock of synctest. It knows the scripts by what
// they do; the tests with a real Redis run them.
type memory struct {
	mu    sync.Mutex
	keys  map[string]stored
	away  error
	twice bool // SET arrives twice, as if the client had lost the first reply
}

type stored struct {
	value   string
	expires time.Time
}

func newMemory() *memory { return &memory{keys: make(map[string]stored)} }

func (m *memory) setAway(err error) { m.mu.Lock(); defer m.mu.Unlock(); m.away = err }
func (m *memory) get(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live(key).value
}

func (m *memory) delete(key string) { m.mu.Lock(); defer m.mu.Unlock(); delete(m.keys, key) }

func (m *memory) set(key, value string, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = stored{value, time.Now().Add(ttl)}
}

func (m *memory) ttl(key string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Until(m.live(key).expires)
}

func (m *memory) live(key string) stored {
	if s := m.keys[key]; time.Now().Before(s.expires) {
		return s
	}
	delete(m.keys, key)
	return stored{}
}

// Do implements idempotency.Redis.
func (m *memory) Do(_ context.Context, args ...any) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return nil, m.away
	}
	text := func(i int) string { return args[i].(string) }
	ttl := func(i int) time.Time { return time.Now().Add(time.Duration(args[i].(int64)) * time.Millisecond) }
	switch command := text(0); command {
	case "GET":
		if s := m.live(text(1)); s.value != "" {
			return s.value, nil
		}
		return nil, nil
	case "SET":
		if len(args) == 6 && text(3) == "NX" {
			taken := m.live(text(1)).value != ""
			if !taken {
				m.keys[text(1)] = stored{text(2), ttl(5)}
			}
			if taken || m.twice {
				return nil, nil
			}
			return "OK", nil
		}
		m.keys[text(1)] = stored{text(2), ttl(4)}
		return "OK", nil
	case "DEL":
		delete(m.keys, text(1))
		return int64(1), nil
	case "PEXPIRE":
		s := m.live(text(1))
		if s.value == "" {
			return int64(0), nil
		}
		s.expires = ttl(2)
		m.keys[text(1)] = s
		return int64(1), nil
	case "EVAL":
		return m.eval(text(1), text(3), text(4), args[5:])
	default:
		return nil, fmt.Errorf("unknown command %s", command)
	}
}

func (m *memory) eval(script, key, value string, args []any) (any, error) {
	found := m.live(key).value
	ttl := func(v any) time.Time { return time.Now().Add(time.Duration(v.(int64)) * time.Millisecond) }
	switch {
	case strings.Contains(script, `"DEL"`):
		if found == value {
			delete(m.keys, key)
		}
		return bit(found == "" || found == value), nil
	case strings.Contains(script, `"PEXPIRE"`):
		if found == value {
			m.keys[key] = stored{value, ttl(args[0])}
		}
		return bit(found == value), nil
	default:
		ok := found == "" || found == value || found == args[0]
		if ok {
			m.keys[key] = stored{args[0].(string), ttl(args[1])}
		}
		return bit(ok), nil
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
