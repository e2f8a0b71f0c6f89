package query_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state/query"
)

// catalog knows some values of fields.
func catalog(f query.Field, part string) []string {
	known := map[query.Field][]string{
		query.Name:   {"billing.charge", "billing.refund", "mail.send all"},
		query.Worker: {"celery@a", "celery@b"},
		query.State:  {"FAILURE", "HALF-WAY"},
	}
	return slices.DeleteFunc(slices.Clone(known[f]), func(s string) bool {
		return !strings.Contains(strings.ToLower(s), strings.ToLower(part))
	})
}

func TestComplete(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   string   // | is the cursor
		want []string // the query with each suggestion, as far as the test looks
		more bool     // there are others
	}{
		"field":               {"wor|", []string{"worker:", "root:"}, false},
		"field by other name": {"hostn|", []string{"worker:"}, false},
		"field misspelled":    {"wroker|", []string{"worker:"}, false},
		"field in a query":    {"a (-que| OR b", []string{"a (-queue: OR b"}, false},
		"field before colon":  {"nam|:x", []string{"name:x"}, true},
		"field, nothing yet":  {"|", []string{"state:", "name:", "worker:"}, true},
		"next field":          {"state:failure |", []string{"state:failure state:", "state:failure name:"}, true},
		"whole condition":     {"orphan|", []string{"is:orphaned"}, false},
		"state as a word":     {"fail|", []string{"failure:", "state:failure"}, false},
		"name as a word":      {"refu|", []string{"name:billing.refund"}, false},
		"value":               {"name:BILL|", []string{"name:billing.charge", "name:billing.refund"}, false},
		"value in the middle": {"name:bill|x,a b", []string{"name:billing.charge,a b", "name:billing.refund,a b"}, false},
		"value misspelled":    {"name:biling.chrage|", []string{"name:billing.charge"}, false},
		"value with space":    {"name:mail|", []string{`name:"mail.send all"`}, false},
		"value in quotes":     {`name:"mail.send a|`, []string{`name:"mail.send all"`}, false},
		"value contained":     {"worker:@B|", []string{"worker:celery@b"}, false},
		"values, nothing yet": {"worker:|", []string{"worker:celery@a", "worker:celery@b"}, false},
		"second value":        {"worker:celery@a,|", []string{"worker:celery@a,celery@a", "worker:celery@a,celery@b"}, false},
		"state":               {"state:re|", []string{"state:received", "state:retry", "state:revoked", "state:rejected"}, true},
		"custom state":        {"STATE:half|", []string{"STATE:half-way"}, false},
		"is":                  {"is:re|", []string{"is:redelivered", "is:retried"}, true},
		"time":                {"received:|", []string{"received:-15m..", "received:-1h.."}, true},
		"duration":            {"run:>1|", []string{"run:>100ms", "run:>1s", "run:>10s", "run:>1m", "run:>1h"}, false},
		"number":              {"retries:|", []string{"retries:>0"}, true},
		"text":                {"args:4|", nil, false},
		"free text in quotes": {`"sta|`, nil, false},
		"unknown field":       {"x:a|", nil, false},
		"nothing like it":     {"zzzzzz|", nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after, _ := strings.Cut(tt.in, "|")
			in := before + after
			suggestions := query.Complete(in, len(before), catalog)
			var got []string
			for _, s := range suggestions {
				got = append(got, in[:s.Start]+s.Text+in[s.End:])
			}
			if tt.more && len(got) > len(tt.want) {
				got = got[:len(tt.want)]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("suggestions at %s (-want +got):\n%s", tt.in, diff)
			}
			if len(suggestions) > 10 {
				t.Errorf("%d suggestions at %s, want at most 10", len(suggestions), tt.in)
			}
		})
	}
}

func TestSuggestionsAreSpelledRight(t *testing.T) {
	t.Parallel()
	for _, f := range query.Fields() {
		in := f.String() + ":"
		for _, s := range query.Complete(in, len(in), catalog) {
			if q, err := query.Parse(in[:s.Start] + s.Text + in[s.End:]); err != nil {
				t.Errorf("suggestion %q for %s: %q, %v", s.Text, in, q, err)
			}
		}
	}
}

func FuzzComplete(f *testing.F) {
	f.Add(`name:"a \" b`, 9)
	f.Add("-(state:failure,re retries:>", 18)
	f.Add(`",é"`, -1)
	f.Fuzz(func(t *testing.T, text string, cursor int) {
		for _, s := range query.Complete(text, cursor, catalog) {
			if s.Start < 0 || s.End < s.Start || s.End > len(text) || s.Text == "" {
				t.Fatalf("suggestion at %d of %q = %+v", cursor, text, s)
			}
		}
		query.Complete(text, cursor, nil)
	})
}
