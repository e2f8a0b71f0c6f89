package query_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

func TestParseAudit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0).UTC()
	const text = "actor=ada&cursor=12&from=-1h&kind=login&limit=3&outcome=refused&to=2026-11-21T10%3A00%3A00Z"
	v, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	q, err := query.ParseAudit(v, now)
	want := history.AuditFilter{
		Kind: history.AuditLogin, Outcome: history.AuditRefused, Actor: "ada", From: now.Add(-time.Hour),
		To: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Before: 12, Limit: 3,
	}
	if got := q.Filter(); got != want || err != nil {
		t.Errorf("filter = %+v, %v, want %+v", got, err, want)
	}
	if got := q.URL("/x"); got != "/x?"+text {
		t.Errorf("URL = %s, want %s", got, "/x?"+text)
	}
	if q, err := query.ParseAudit(nil, now); err != nil || q.Filter() != (history.AuditFilter{Limit: query.DefaultLimit}) || q.URL("/x") != "/x" {
		t.Errorf("no parameters: %+v, %v", q, err)
	}
	for param, value := range map[string]string{"kind": "x", "outcome": "x", "from": "yesterday", "to": "-1y", "cursor": "x", "limit": "0"} {
		_, err := query.ParseAudit(url.Values{param: {value}}, now)
		if wrong, ok := errors.AsType[*query.Error](err); !ok || wrong.Param != param {
			t.Errorf("%s=%s: error %v", param, value, err)
		}
	}
}
