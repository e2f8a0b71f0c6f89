// Package testenv tells a test where the real programs it needs are: brokers, Celery, a browser. It
// starts, stops and installs nothing (scripts/deps and scripts/services do), and no code outside
// tests may import it.
package testenv

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Thorough reports whether tests are to try everything, as make thorough asks, however long that takes.
func Thorough() bool { return os.Getenv("UMBEL_TEST_THOROUGH") != "" }

// Trials returns how many random cases a test tries: n if it is to be thorough, else a tenth of them.
func Trials(n int) int {
	if Thorough() {
		return n
	}
	return (n + 9) / 10
}

// AMQP returns the URL of a running RabbitMQ that other tests use at the same time.
func AMQP(t testing.TB) string {
	t.Helper()
	return need(t, "amqp", "UMBEL_TEST_AMQP_URL")
}

// Management returns the URL of the management API of the RabbitMQ behind AMQP, with a login.
func Management(t testing.TB) string {
	t.Helper()
	return need(t, "management", "UMBEL_TEST_MANAGEMENT_URL")
}

// Redis returns the URL of a running Redis that other tests use at the same time.
func Redis(t testing.TB) string {
	t.Helper()
	return need(t, "redis", "UMBEL_TEST_REDIS_URL")
}

// Postgres returns the URL of a running PostgreSQL that other tests use at the same time: they make schemas of
// their own.
func Postgres(t testing.TB) string {
	t.Helper()
	return need(t, "postgres", "UMBEL_TEST_POSTGRES_URL")
}

// Python returns the path of a Python interpreter that can import celery, gevent, msgpack, redis, sqlalchemy and yaml.
func Python(t testing.TB) string {
	t.Helper()
	return program(t, "python", "UMBEL_TEST_PYTHON")
}

// Django returns the path of a Python interpreter that can import celery, django, django_celery_outbox and psycopg.
func Django(t testing.TB) string {
	t.Helper()
	return program(t, "django", "UMBEL_TEST_DJANGO")
}

// Flower returns the path of a Python interpreter that can import celery, flower and redis.
func Flower(t testing.TB) string {
	t.Helper()
	return program(t, "flower", "UMBEL_TEST_FLOWER")
}

// Chromium returns the path of a Chromium browser.
func Chromium(t testing.TB) string {
	t.Helper()
	return program(t, "chromium", "UMBEL_TEST_CHROMIUM")
}

// Prometheus returns the path of a Prometheus server. promtool is on the PATH then.
func Prometheus(t testing.TB) string {
	t.Helper()
	return need(t, "prometheus", "UMBEL_TEST_PROMETHEUS")
}

// Axe returns the path of the script of axe-core.
func Axe(t testing.TB) string {
	t.Helper()
	return need(t, "axe", "UMBEL_TEST_AXE")
}

// FakeTime returns the path of libfaketime. Preloaded by LD_PRELOAD, it gives a process the wall clock that FAKETIME says.
func FakeTime(t testing.TB) string {
	t.Helper()
	return need(t, "faketime", "UMBEL_TEST_FAKETIME")
}

// RedisServer returns the path of a redis-server, for a Redis of the test's own.
func RedisServer(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("redis-server"); err == nil {
		return path
	}
	return need(t, "redis", "UMBEL_TEST_REDIS_SERVER")
}

// program is need for what runs whole programs. The race detector sees nothing of them: with -short, as it runs, they are
// left out.
func program(t testing.TB, name, key string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short")
	}
	return need(t, name, key)
}

// need returns the environment variable key. Without it the test is skipped, or fails where it must not be: when
// CI is true or UMBEL_REQUIRE, a comma-separated list, has the name.
func need(t testing.TB, name, key string) string {
	t.Helper()
	if value := os.Getenv(key); value != "" {
		return value
	}
	required := strings.Split(os.Getenv("UMBEL_REQUIRE"), ",")
	if os.Getenv("CI") == "true" || slices.Contains(required, name) {
		t.Fatalf("%s is not set: run make test", key)
	}
	t.Skipf("%s is not set: run make test", key)
	return ""
}
