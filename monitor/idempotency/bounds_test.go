package idempotency_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// hostile returns arguments that take as long as any of a mebibyte can.
func hostile() map[string]string {
	members := func(format string) string {
		var b strings.Builder
		for i := range idempotency.MaxValues - 1 {
			fmt.Fprintf(&b, format+",", (i*7919)%idempotency.MaxValues)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	list := func(item string) string {
		n := min(idempotency.MaxValues, idempotency.MaxBytes/(len(item)+1)) - 2
		return `{"a":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	return map[string]string{
		"text":                  `{"a":"` + strings.Repeat("a", idempotency.MaxBytes-8) + `"}`,
		"wide text":             `{"a":"` + strings.Repeat("ü", idempotency.MaxBytes/2-4) + `"}`,
		"escapes":               `{"a":"` + strings.Repeat(`\ud800`, idempotency.MaxBytes/6-2) + `"}`,
		"keys":                  members(`"%05d":0`),
		"keys that begin alike": members(`"abcdefgh%05d":0`),
		"one key":               members(`"a":%d`),
		"floats":                list("0.12345678901234567"),
		"subnormal":             list("2.2250738585072011e-308"),
		"integer":               `{"a":` + strings.Repeat("9", idempotency.MaxBytes-8) + `}`,
		"long float":            `{"a":0.` + strings.Repeat("9", idempotency.MaxBytes-10) + `}`,
		"containers":            list("[{}]")[:len(list("[{}]"))/2] + "]}",
		"nesting":               `{"a":` + strings.Repeat("[", 1<<20-6),
		"keys on the way":       strings.Repeat(`{"`+strings.Repeat("k", 2000)+`":`, 500) + "[[",
		"code":                  `{"a": ` + strings.Repeat("__import__('os').system('true') or ", 29000) + `1}`,
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, text := range hostile() {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				kwargs, err := idempotency.Parse([]byte(text))
				if err == nil {
					_, err = idempotency.Fingerprint("payments.charge", kwargs)
				}
				_ = err
			}
		})
	}
}

// BenchmarkHostile shows less than 10 ms for each. The test leaves room for machines ten times slower.
func TestHostileArgumentsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	const limit = slowdown * 100 * time.Millisecond
	fastest := func(text string) time.Duration {
		least := time.Hour
		for range 20 {
			start := time.Now()
			kwargs, err := idempotency.Parse([]byte(text))
			if err == nil {
				_, err = idempotency.Fingerprint("payments.charge", kwargs)
			}
			_ = err // some are refused
			if least = min(least, time.Since(start)); least < limit {
				break
			}
		}
		return least
	}
	for name, text := range hostile() {
		if took := fastest(text); took >= limit {
			t.Errorf("%s took %v, want less than %v", name, took, limit)
		}
	}
}

func TestParseRefusesWhatExceedsABound(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		`is longer than 1 MiB`:                         strings.Repeat(" ", idempotency.MaxBytes) + "1",
		`has more than 20,000 values`:                  "[" + strings.Repeat("1,", idempotency.MaxValues) + "1]",
		`nests deeper than 500 levels`:                 strings.Repeat("[", idempotency.MaxDepth+1),
		`has more than 100 floats with over 19 digits`: "[" + strings.Repeat("1e-310,", idempotency.MaxFar+1) + "1]",
	} {
		if _, err := idempotency.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600 {
			t.Errorf("got %.700v, want %s", err, want)
		}
	}
}
