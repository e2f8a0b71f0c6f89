package query_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

func failurePosition() history.FailurePosition {
	return history.FailurePosition{LastAt: time.UnixMicro(1_795_262_400_000_001).UTC(), ID: 0x1dd7dc58725190cd}
}

func TestParseFailures(t *testing.T) {
	t.Parallel()
	pos := failurePosition()
	early := history.FailurePosition{LastAt: time.UnixMicro(-1).UTC(), ID: 1}
	for raw, want := range map[string]query.Failures{
		"":                                     {},
		"show=&limit=&cursor=":                 {},
		"show=open&limit=50":                   {},
		"show=resolved":                        {Show: query.ShowResolved},
		"show=all&limit=7":                     {Show: query.ShowAll, Limit: 7},
		"cursor=" + query.EncodeFailure(pos):   {After: &pos},
		"cursor=" + query.EncodeFailure(early): {After: &early},
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := query.ParseFailures(v)
		if err != nil {
			t.Errorf("ParseFailures(%q): %v", raw, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseFailures(%q) (-want +got):\n%s", raw, diff)
		}
		u, err := url.Parse(got.URL("/failures"))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := query.ParseFailures(u.Query()); err != nil || cmp.Diff(got, again) != "" {
			t.Errorf("%s reads back as %+v, %v", u, again, err)
		}
	}
}

func TestParseFailuresNamesTheWrongParameter(t *testing.T) {
	t.Parallel()
	good := query.EncodeFailure(failurePosition())
	for raw, param := range map[string]string{
		"show=new":                          "show",
		"show=open&show=all":                "show",
		"limit=0":                           "limit",
		"cursor=x":                          "cursor",
		"cursor=" + good[1:]:                "cursor",
		"cursor=" + good + "0":              "cursor",
		"cursor=" + strings.ToUpper(good):   "cursor",
		"cursor=" + strings.Repeat("0", 32): "cursor",
		"cursor=" + strings.Repeat("f", 32): "cursor",
		"cursor=" + strings.Repeat("z", 32): "cursor",
	} {
		v, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = query.ParseFailures(v)
		wrong, ok := errors.AsType[*query.Error](err)
		if !ok || wrong.Param != param || wrong.Message == "" {
			t.Errorf("ParseFailures(%q) = %#v, want an error of %s", raw, err, param)
		}
	}
}

func TestFailuresRequest(t *testing.T) {
	t.Parallel()
	now, pos := time.UnixMicro(5).UTC(), failurePosition()
	for name, tt := range map[string]struct {
		query query.Failures
		want  history.FailureRequest
	}{
		"open":     {query.Failures{}, history.FailureRequest{Resolved: new(false), Limit: 50}},
		"resolved": {query.Failures{Show: query.ShowResolved, Limit: 3}, history.FailureRequest{Resolved: new(true), Limit: 3}},
		"all":      {query.Failures{Show: query.ShowAll, After: &pos}, history.FailureRequest{Limit: 50, After: &pos}},
	} {
		tt.want.Now, tt.want.MaxAge = now, time.Second
		if diff := cmp.Diff(tt.want, tt.query.Request(now, time.Second)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
