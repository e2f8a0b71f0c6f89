package dial_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/dial"
)

func TestFirst(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, test := range map[string]struct {
		endpoints []string
		want      string
		failure   string
		tried     []string
	}{
		"the first":        {[]string{"up", "also up"}, "up", "", []string{"up"}},
		"the second":       {[]string{"down", "up"}, "up", "", []string{"down", "up"}},
		"none":             {[]string{"down", "down"}, "", "down; down", []string{"down", "down"}},
		"one":              {[]string{"down"}, "", "down", []string{"down"}},
		"an ended context": {[]string{"cancel", "up"}, "", "context canceled", []string{"cancel"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var tried []string
			got, err := dial.FirstOf(ctx, test.endpoints, func(ctx context.Context, e string) (string, error) {
				tried = append(tried, e)
				switch e {
				case "down":
					return "", down
				case "cancel":
					cancel()
					return "", ctx.Err()
				}
				return e, nil
			})
			if diff := cmp.Diff(test.tried, tried); diff != "" || got != test.want {
				t.Errorf("got %q, want %q; tried (-want +got):\n%s", got, test.want, diff)
			}
			switch {
			case test.failure == "" && err == nil:
			case err == nil || err.Error() != test.failure:
				t.Errorf("error %v, want %s", err, test.failure)
			case test.tried[0] == "down" && !errors.Is(err, down):
				t.Errorf("error %v does not wrap its cause", err)
			}
		})
	}
}
