package idempotency_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/monitor/idempotency/goredis"
)

const contended = 12 // calls for which workers contend

// TestPythonAndGoContend has two workers of each language run the same few calls, with the Python package umbel and
// with this one. Each twentieth run is killed with SIGKILL in its middle, and of those with fenced values as many
// take longer than the lock. While the TTL of a run holds, there is no other of its call; what was completed does not run
// again; and no key is left for ever.
func TestPythonAndGoContend(t *testing.T) {
	t.Parallel()
	for mode, ttl := range map[string]time.Duration{"fenced": 400 * time.Millisecond, "plain": time.Second} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			url, _ := testenv.Redis(t), testenv.Python(t)
			client := connect(t, url)
			name := "contend." + uuid.NewString()
			t.Cleanup(func() { clean(t, client, name) })
			test := []string{url, name, mode, strconv.FormatInt(ttl.Milliseconds(), 10)}
			executable, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
			defer stop()
			var g errgroup.Group
			kills := make(chan struct{}, 10_000)
			for range 2 {
				g.Go(func() error {
					return worker(ctx, kills, func() *exec.Cmd {
						c := exec.CommandContext(t.Context(), executable, append([]string{"contend"}, test...)...)
						c.Stderr = t.Output()
						return c
					})
				})
				g.Go(func() error {
					return worker(ctx, kills, func() *exec.Cmd {
						return umbelPython(t, "contend.py", url, name, strconv.Itoa(contended), mode, test[3])
					})
				})
			}
			<-ctx.Done()
			if err := client.Set(t.Context(), "stop:"+name, "", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			runs := map[string]int{}
			for i := range contended {
				check(t, client, name, i, mode == "fenced", ttl, runs)
			}
			t.Logf("runs %v, %d killed", runs, len(kills))
			if len(kills) == 0 || runs["go"] == 0 || runs["python"] == 0 {
				t.Errorf("runs %v, %d killed: too few to show anything", runs, len(kills))
			}
			finish(t, client, name, ttl)
		})
	}
}

// worker starts a program again each time it was killed, which it is when it says that it hangs.
func worker(ctx context.Context, kills chan<- struct{}, program func() *exec.Cmd) error {
	for ctx.Err() == nil {
		c := program()
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		killed := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			killed = true
			kills <- struct{}{}
			if err := c.Process.Kill(); err != nil {
				return err
			}
		}
		if err := c.Wait(); err != nil && !killed {
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// contend is a worker in Go: what contend.py does.
func contend(args []string) error {
	ctx := context.Background()
	name, fenced := args[1], args[2] == "fenced"
	ms, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	o, err := redis.ParseURL(args[0])
	if err != nil {
		return err
	}
	client := redis.NewClient(o)
	ttl := time.Duration(ms) * time.Millisecond
	locks, err := idempotency.NewLocks(goredis.New(client), idempotency.LockOptions{TTL: ttl, CompletionTTL: time.Minute, Plain: !fenced})
	if err != nil {
		return err
	}
	w := contender{client: client, locks: locks, name: name, id: "go-" + uuid.NewString(), ttl: ttl, fenced: fenced}
	for client.Exists(ctx, "stop:"+name).Val() == 0 {
		if err := w.run(ctx, rand.IntN(contended)); err != nil {
			return err
		}
	}
	return client.Close()
}

type contender struct {
	client   *redis.Client
	locks    *idempotency.Locks
	name, id string
	ttl      time.Duration
	fenced   bool
}

func (w *contender) run(ctx context.Context, i int) error {
	kwargs, err := idempotency.Parse(fmt.Appendf(nil, `{"order": %d, "note": "ü\ud83d", "amount": 10000000000000000.0}`, i))
	if err != nil {
		return err
	}
	fingerprint, err := idempotency.Fingerprint(w.name, kwargs)
	if err != nil {
		return err
	}
	tried := w.now(ctx)
	lock, err := w.locks.Acquire(ctx, fingerprint, w.id)
	if _, skip := errors.AsType[*idempotency.SkippedError](err); skip {
		pass(time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	w.log(ctx, i, "enter", tried)
	chance := rand.Float64()
	if chance < 0.05 {
		_, _ = os.Stdout.WriteString("hang\n")
		pass(time.Minute) // until it is killed
	}
	if chance < 0.10 && w.fenced {
		pass(w.ttl * 3 / 2)
	} else {
		pass(5 * time.Millisecond)
	}
	if chance > 0.98 {
		what := "done"
		if err = lock.Complete(ctx); errors.Is(err, idempotency.ErrLost) {
			what, err = "lost", nil
		}
		w.log(ctx, i, what, tried)
		return err
	}
	w.log(ctx, i, "leave", tried) // before, since the next one can enter before the reply arrives
	if err = lock.Release(ctx); errors.Is(err, idempotency.ErrLost) {
		return nil
	}
	return err
}

func (w *contender) now(ctx context.Context) int64 { return w.client.Time(ctx).Val().UnixMicro() }

func (w *contender) log(ctx context.Context, i int, what string, tried int64) {
	w.client.RPush(ctx, fmt.Sprintf("log:%s:%d", w.name, i), fmt.Sprintf("%s %s %d %d", what, w.id, tried, w.now(ctx)))
}

// check reads what workers wrote of one call, and counts its runs by language.
func check(t *testing.T, client *redis.Client, name string, i int, fenced bool, ttl time.Duration, runs map[string]int) {
	t.Helper()
	lines, err := client.LRange(t.Context(), fmt.Sprintf("log:%s:%d", name, i), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string]int64{} // when they tried to acquire
	completed, overrun := "", false
	for _, line := range lines {
		var what, id string
		var tried, now int64
		if _, err := fmt.Sscanf(line, "%s %s %d %d", &what, &id, &tried, &now); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		// Plain values do not notice that a lock has expired: what such a run writes is the weakness that tokens remove.
		overrun = overrun || !fenced && what != "enter" && now-tried >= ttl.Microseconds()
		if what != "enter" {
			delete(inside, id)
			if what == "done" {
				completed = id
			}
			continue
		}
		language, _, _ := strings.Cut(id, "-")
		runs[language]++
		for other, since := range inside {
			if d := time.Duration(now-since) * time.Microsecond; d < ttl && !overrun {
				t.Errorf("call %d: %s runs %v after %s tried to, which still runs", i, id, d, other)
			}
		}
		if completed != "" && !overrun {
			t.Errorf("call %d: %s runs after %s has completed it", i, id, completed)
		}
		inside[id] = tried
	}
}

// finish checks that every key expires, and that what was not completed can be, before its longest TTL has passed twice.
func finish(t *testing.T, client *redis.Client, name string, ttl time.Duration) {
	t.Helper()
	locks, err := idempotency.NewLocks(goredis.New(client), idempotency.LockOptions{TTL: ttl, CompletionTTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := client.Keys(t.Context(), "lock:celery:exec:"+name+":*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) > contended {
		t.Errorf("there are %d keys for %d calls: the languages disagree on fingerprints", len(keys), contended)
	}
	for _, key := range keys {
		left, err := client.PTTL(t.Context(), key).Result()
		if err != nil || left == -1 || left > time.Minute {
			t.Errorf("%s expires in %v, %v", key, left, err)
		}
		for {
			err := locks.Run(t.Context(), strings.TrimPrefix(key, idempotency.KeyPrefix), "", func(context.Context) error { return nil })
			if e, ok := errors.AsType[*idempotency.SkippedError](err); err == nil || ok && e.Reason == idempotency.AlreadyCompleted {
				break
			} else if !ok {
				t.Fatal(err)
			}
			pass(ttl / 20) // a run that was killed holds it, until the TTL has passed
		}
	}
}

func clean(t *testing.T, client *redis.Client, name string) {
	t.Helper()
	ctx := context.Background()
	for _, pattern := range []string{"lock:celery:exec:" + name + ":*", "log:" + name + ":*", "stop:" + name} {
		if keys := client.Keys(ctx, pattern).Val(); len(keys) > 0 {
			if err := client.Del(ctx, keys...).Err(); err != nil {
				t.Error(err)
			}
		}
	}
}

func connect(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}
