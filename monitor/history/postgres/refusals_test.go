package postgres_test

import (
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

// with returns an address with one more parameter.
func with(t *testing.T, address, key, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// sentence checks that an error is one line that says something.
func sentence(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one sentence that says %q", err, says)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	address := testpostgres.Database(t)
	role := "role_" + strings.ToLower(rand.Text()[:12])
	testpostgres.Execute(t, address, "CREATE ROLE "+role)
	t.Cleanup(func() { testpostgres.Execute(t, address, "DROP OWNED BY "+role+" CASCADE; DROP ROLE "+role) })
	testpostgres.Execute(t, address, "CREATE SCHEMA closed")
	for name, tc := range map[string]struct {
		key, value string
		readOnly   bool
		says       string
	}{
		"replica":             {"default_transaction_read_only", "on", false, "PostgreSQL is read-only"},
		"no rights to create": {"role", role, false, "the user of PostgreSQL lacks rights"},
		"no schema":           {"search_path", "nowhere", false, "no schema of search_path is there"},
		"nothing to read":     {"application_name", "x", true, "there is no history in it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: with(t, address, tc.key, tc.value), ReadOnly: tc.readOnly})
			sentence(t, err, tc.says)
		})
	}
	t.Run("no rights to use the schema", func(t *testing.T) {
		t.Parallel()
		_, err := postgres.Open(t.Context(), postgres.Options{URL: with(t, with(t, address, "role", role), "search_path", "closed")})
		sentence(t, err, "the user may use none")
	})
}

func TestOldServer(t *testing.T) {
	t.Parallel()
	sentence(t, postgres.RefuseServer(140_011), "PostgreSQL 14 is too old: use version 15 or later")
	if err := postgres.RefuseServer(150_000); err != nil {
		t.Error(err)
	}
}

// TestWritesFail has the server refuse writes as a full disk, a replica and a pooler make it do; the next write succeeds.
func TestWritesFail(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	for code, says := range map[string]string{
		"53100": "the disk of PostgreSQL is full: free some space",
		"53200": "PostgreSQL lacks memory or other resources",
		"25006": "PostgreSQL is read-only",
		"26000": "add default_query_exec_mode=exec to the address",
	} {
		testpostgres.Execute(t, address, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '`+code+`'; END $$`)
		testpostgres.Execute(t, address, `CREATE TRIGGER fail BEFORE INSERT ON journal EXECUTE FUNCTION fail()`)
		_, err := d.Write(t.Context(), history.Batch{Journal: []byte("x")})
		sentence(t, err, says)
		if h := d.Health(); !strings.Contains(h.LastError, says) {
			t.Errorf("health says %q, want %q", h.LastError, says)
		}
		testpostgres.Execute(t, address, `DROP FUNCTION fail CASCADE`)
		if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("x")}); err != nil || d.Health().LastError != "" {
			t.Errorf("after SQLSTATE %s: %v, health says %q", code, err, d.Health().LastError)
		}
	}
}
