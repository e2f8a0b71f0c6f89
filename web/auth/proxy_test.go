package auth_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
)

// noStore keeps nothing.
type noStore struct{}

func (noStore) Sessions(context.Context) ([]history.Session, error) { return nil, nil }

func (noStore) SaveSessions(context.Context, []history.Session, []history.Session, [][32]byte) error {
	return nil
}

func (noStore) Tokens(context.Context) ([]history.Token, error) { return nil, nil }

func (noStore) CreateToken(_ context.Context, t history.Token) (history.Token, error) { return t, nil }

func (noStore) SaveTokens(context.Context, []history.Token) error { return nil }

func (noStore) DeleteToken(context.Context, int64) error { return nil }

func TestOnlyTrustedProxiesAreBelieved(t *testing.T) {
	t.Parallel()
	networks, err := auth.ParseNetworks([]string{"10.1.0.0/16", "192.0.2.7", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := auth.New(t.Context(), auth.Options{
		Store: noStore{}, Proxy: auth.Proxy{User: "X-Forwarded-User", Groups: "X-Forwarded-Groups"}, TrustedProxies: networks,
		HtpasswdFile: passwordFile(t, "ann", "s3cret"), Roles: auth.Roles{Admin: []string{"group:ops"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const user, groups = "X-Forwarded-User", "X-Forwarded-Groups"
	for name, test := range map[string]struct {
		from   string
		header http.Header
		want   string // user and role, or the beginning of the error
	}{
		"proxy":                   {"10.1.2.3:99", http.Header{user: {"ann"}}, "ann viewer"},
		"proxy, groups":           {"10.1.2.3:99", http.Header{user: {"ann"}, groups: {"web", "ops,x"}}, "ann admin"},
		"proxy of one address":    {"192.0.2.7:1", http.Header{user: {"ann"}}, "ann viewer"},
		"proxy, mapped to IPv6":   {"[::ffff:10.1.2.3]:99", http.Header{user: {"ann"}}, "ann viewer"},
		"proxy of IPv6":           {"[fd00::1]:99", http.Header{user: {"ann"}}, "ann viewer"},
		"nobody":                  {"10.1.2.3:99", http.Header{}, " "},
		"nobody, empty":           {"10.1.2.3:99", http.Header{user: {" "}}, " "},
		"groups of nobody":        {"10.1.2.3:99", http.Header{groups: {"ops"}}, "The header X-Forwarded-User is given 0 times"},
		"two users":               {"10.1.2.3:99", http.Header{user: {"eve", "ann"}}, "The header X-Forwarded-User is given 2 times"},
		"long":                    {"10.1.2.3:99", http.Header{user: {strings.Repeat("x", 257)}}, "In the header X-Forwarded-User, the name"},
		"control characters":      {"10.1.2.3:99", http.Header{user: {"a\x7fb"}}, "In the header X-Forwarded-User, the name"},
		"other address":           {"10.2.0.1:99", http.Header{user: {"ann"}}, "The header X-Forwarded-User came from 10.2.0.1, which is not a trusted proxy"},
		"other address, groups":   {"10.2.0.1:99", http.Header{groups: {"ops"}}, "The header X-Forwarded-User came from 10.2.0.1"},
		"loopback is not listed":  {"127.0.0.1:99", http.Header{user: {"ann"}}, "The header X-Forwarded-User came from 127.0.0.1"},
		"socket is not listed":    {"@", http.Header{user: {"ann"}}, "The header X-Forwarded-User came from 127.0.0.1"},
		"claims of another proxy": {"10.2.0.1:99", http.Header{user: {"ann"}, "X-Forwarded-For": {"10.1.2.3"}}, "The header X-Forwarded-User came from 10.2.0.1"},
		"with a right password":   {"10.2.0.1:99", http.Header{user: {"root"}, "Authorization": {"Basic YW5uOnMzY3JldA=="}}, "The header X-Forwarded-User came from 10.2.0.1"},
		"other spelling":          {"10.2.0.1:99", http.Header{"X_forwarded_user": {"ann"}}, " "},
		"address unknown":         {"nonsense", http.Header{user: {"ann"}}, "The header X-Forwarded-User came from"},
	} {
		g, err := s.Authenticate(&http.Request{RemoteAddr: test.from, Header: test.header})
		got := g.User + " " + string(g.Role)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestNetworksAreChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "10.0.0.0/33", "proxy.example.com", "10.0.0", "10.0.0.0/8/8"} {
		if got, err := auth.ParseNetworks([]string{text}); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestAddressesOfTheAuditLogAreNotSpoofed sends refused passwords with what clients and proxies say of addresses.
func TestAddressesOfTheAuditLogAreNotSpoofed(t *testing.T) {
	t.Parallel()
	networks, _ := auth.ParseNetworks([]string{"10.0.0.0/8"})
	for name, test := range map[string]struct{ from, forwarded, want string }{
		"client":            {"203.0.113.9:1", "", "203.0.113.9"},
		"client that lies":  {"203.0.113.9:1", "198.51.100.1", "203.0.113.9"},
		"behind a proxy":    {"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},
		"behind two":        {"10.0.0.1:1", "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"},
		"proxy of no words": {"10.0.0.1:1", "", "10.0.0.1"},
		"nonsense":          {"10.0.0.1:1", "198.51.100.1, <script>", "10.0.0.1"},
	} {
		log := new(auditRecords)
		s, err := auth.New(t.Context(), auth.Options{Store: noStore{}, Audit: log, TrustedProxies: networks, HtpasswdFile: passwordFile(t, "ann", "s3cret")})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/", http.NoBody)
		r.RemoteAddr = test.from
		r.SetBasicAuth("ann", "wrong")
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if _, err := s.Authenticate(r); err == nil || len(log.list) != 1 {
			t.Fatalf("error %v, %d records", err, len(log.list))
		}
		if got := log.list[0]; got.RemoteAddr != test.want || got.Outcome != history.AuditRefused || got.Kind != history.AuditLogin || got.Method != "basic" {
			t.Errorf("%s: %+v, want the address %s", name, got, test.want)
		}
	}
}

// TestAuditRecordsSayWhereRequestsWereMade asks through a proxy on this machine, and pretends to be one elsewhere.
func TestAuditRecordsSayWhereRequestsWereMade(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	for peer, want := range map[string]string{"127.0.0.1:4711": "203.0.113.9", "[::1]:4711": "203.0.113.9", "198.51.100.7:4711": "198.51.100.7", "@": "203.0.113.9"} {
		for _, password := range []string{"s3cret", "wrong"} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/act/purge", http.NoBody)
			r.RemoteAddr = peer
			r.SetBasicAuth("ann", password)
			r.Header.Set("X-Forwarded-For", "192.0.2.1, 203.0.113.9")
			g, err := s.Authenticate(r)
			ctx := auth.NewContext(r.Context(), g)
			if err != nil {
				ctx = auth.Refused(ctx, err)
			}
			if got := auth.AuditRecord(r.WithContext(ctx)); got.RemoteAddr != want {
				t.Errorf("through %s with the password %s: recorded %q, want %q", peer, password, got.RemoteAddr, want)
			}
		}
	}
}
