package otlp_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/otlp"
)

func TestHeadersOfTheListAndSingleOnes(t *testing.T) {
	t.Parallel()
	got, err := otlp.Headers(" x-team = ops%20and%2Csons, authorization=Bearer%20abc,,", []string{"X-Scope=a=b, c%20d", "authorization=Basic xyz"})
	want := http.Header{"X-Team": {"ops and,sons"}, "Authorization": {"Basic xyz"}, "X-Scope": {"a=b, c%20d"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := otlp.Headers("", nil); err != nil || len(got) != 0 {
		t.Errorf("none: %v, %v", got, err)
	}
}

func TestHeadersThatCannotBeSent(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, tc := range map[string]struct {
		list   string
		single []string
	}{
		"no value":         {list: secret},
		"a bad escape":     {list: "a=%zz" + secret},
		"a single alone":   {single: []string{secret}},
		"no name":          {single: []string{"=" + secret}},
		"a name of two":    {single: []string{"a b=" + secret}},
		"a name not ASCII": {single: []string{"ä=" + secret}},
		"a line break":     {single: []string{"a=" + secret + "\r\nb: c"}},
		"an escaped one":   {list: "a=" + secret + "%0d%0ab"},
		"one of Umbel's":   {single: []string{"content-type=" + secret}},
		"a long one":       {single: []string{"a=" + strings.Repeat(secret, 2_000)}},
	} {
		if got, err := otlp.Headers(tc.list, tc.single); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, %v; want an error without the value", name, got, err)
		}
	}
}

// TestHeadersAreSentAndNotLogged sends spans to a collector that needs a key, and refuses later.
func TestHeadersAreSentAndNotLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		status := http.StatusOK
		collector := roundTrip(func(r *http.Request) (*http.Response, error) {
			keys = append(keys, r.Header.Get("X-Api-Key"))
			return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: http.NoBody, Header: http.Header{}, Request: r}, nil
		})
		var log bytes.Buffer
		h, err := otlp.Headers("", []string{"X-Api-Key=hunter2"})
		if err != nil {
			t.Fatal(err)
		}
		x, err := otlp.New(otlp.Options{
			Endpoint: "http://collector:4318", Headers: h, Task: tasks, Offsets: func() map[string]int64 { return nil },
			Transport: collector, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = x.Run(ctx) })
		for _, status = range []int{http.StatusOK, http.StatusUnauthorized} {
			x.Ended(otlp.End{Task: root, Worker: "celery@a", Micros: 20})
			pass(10 * time.Second)
		}
		stop()
		running.Wait()
		if diff := cmp.Diff([]string{"hunter2", "hunter2"}, keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if text := log.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "spans not sent") {
			t.Errorf("the log holds the key, or nothing: %s", text)
		}
	})
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
