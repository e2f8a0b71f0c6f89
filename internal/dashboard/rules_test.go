package dashboard_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/redact"
)

// TestChangedRulesOfRedactionAreAudited starts with the same history and one set of rules after the other.
func TestChangedRulesOfRedactionAreAudited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := redact.Options{Rules: []string{"key iban", "text [0-9]"}} // which would hide part of the digest, too
	for i, start := range []struct {
		rules   redact.Options
		records int
	}{
		{redact.Options{}, 0},
		{own, 1},
		{own, 1},
		{redact.Options{Rules: []string{"key iban"}}, 2},
		{redact.Options{NoDefaults: true}, 3},
		{redact.Options{NoDefaults: true}, 3},
		{redact.Options{}, 4},
		{redact.Options{}, 4},
	} {
		d, err := dashboard.New(dashboard.Options{BrokerURL: "amqp://127.0.0.1:1/", DataDir: dir, Redact: start.rules})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := db.AuditLog(t.Context(), history.AuditFilter{Kind: history.AuditRule, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != start.records {
			t.Errorf("after start %d: %d records, want %d", i, len(list), start.records)
		}
		for _, r := range list {
			if r.Actor != "command line" || r.Action != "redaction rules" || r.Outcome != history.AuditAccepted || r.Detail == "" {
				t.Errorf("record %+v", r)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A redacted query finds the mark as it stands in tasks: as a pattern it would find everything.
func TestRedactedQueriesMeanNoMore(t *testing.T) {
	t.Parallel()
	edit, err := dashboard.Edit(redact.Options{Rules: []string{`text sesame-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`args:sesame-4111`: `args:"********"`,
		`state:failure (args:*sesame-4111* OR -sesame-1)`: `(-"********" OR args:"********") state:failure`,
		`kwargs:"'password': 'hunter2'"`:                  `kwargs:"'password': '********'"`,
		`name:sesame-7*`:                                  `name:~"*********"`,
		`args:((sesame-1`:                                 `args:((********`, // it is no query, and stays none
		`state:failure run:>2s`:                           `state:failure run:>2s`,
	} {
		if got := edit.Query(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
		if got := edit.Query(want); got != want {
			t.Errorf("%s becomes %s when it is redacted again", want, got)
		}
	}
}
