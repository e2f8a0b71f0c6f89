package auth_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/web/auth"
)

// allows reports whether somebody whom a proxy calls name is in a list.
func allows(t interface {
	Helper()
	Fatal(args ...any)
}, list []string, name string,
) bool {
	t.Helper()
	s, err := auth.New(nil, auth.Options{ //nolint:staticcheck // the store needs no context
		Store: noStore{}, Proxy: auth.Proxy{User: "X-User"}, Roles: auth.Roles{Viewer: list, Default: auth.NoRole},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Header: http.Header{"X-User": {name}}, RemoteAddr: "127.0.0.1:1"}
	g, err := s.Authenticate(r)
	return err == nil && g.Role == auth.Viewer
}

func TestFlowerPatternsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern   string
		yes, no   []string
		otherwise string // error
	}{
		{
			pattern: "ann@example.com",
			yes:     []string{"ann@example.com", "Ann@Example.com"},
			no:      []string{"xann@example.com", "ann@example.com.attacker.com", "annXexample.com", "ann@example.comx", "ann@exampleXcom", ""},
		},
		{
			pattern: "ann@example.com|bob@example.com",
			yes:     []string{"ann@example.com", "bob@example.com"},
			no:      []string{"ann@example.com|bob@example.com", "eve@example.com", "|", ""},
		},
		{
			pattern: ".*@example.com",
			yes:     []string{"me@example.com", "john+work@example.com", "a.b-c_d@example.com", "ME@EXAMPLE.COM"},
			no: []string{
				"me@example.com.attacker.com", "me@attacker.com@example.com", "@example.com", "me@exampleXcom", "me@sub.example.com",
				"me@example.com\nx", "eve@attacker.com\n@example.com", "a b@example.com", "me@example.com/", "\"x\"@example.com", "me@EXAMPLE.\u0421OM",
			},
		},
		{pattern: "team-.*@example.com", yes: []string{"team-a@example.com"}, no: []string{"team-@example.com", "x-team-a@example.com"}},
		{pattern: "john+work@example.com", yes: []string{"john+work@example.com"}, no: []string{"johnnwork@example.com", "john@example.com"}},
		{pattern: "ann@kelvin.example", yes: []string{"ann@KELVIN.example"}, no: []string{"ann@\u212Aelvin.example"}}, // the sign of Kelvin folds to k
		{pattern: "", otherwise: "auth is empty"},
		{pattern: "*", otherwise: "the only wildcard"},
		{pattern: ".*", otherwise: "stands for everybody"},
		{pattern: ".*@", otherwise: "stands for everybody"},
		{pattern: "*@example.com", otherwise: "the only wildcard is one .* before the @"},
		{pattern: "ann@.*", otherwise: "not an address"},
		{pattern: "ann@.*.com", otherwise: "not an address"},
		{pattern: ".*@.*", otherwise: "the only wildcard"},
		{pattern: ".*@a.com|b@a.com", otherwise: "cannot be combined"},
		{pattern: "ann@example.com|", otherwise: "a pattern is empty"},
		{pattern: "|", otherwise: "a pattern is empty"},
		{pattern: "example.com", otherwise: "not an e-mail address"},
		{pattern: "[a-z]*@example.com", otherwise: "the only wildcard"},
	} {
		list, err := auth.FlowerPatterns(test.pattern)
		if test.otherwise != "" {
			if err == nil || !strings.Contains(err.Error(), test.otherwise) {
				t.Errorf("%q: error %v, want %q", test.pattern, err, test.otherwise)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		for _, name := range test.yes {
			if !allows(t, list, name) {
				t.Errorf("%q keeps %q out", test.pattern, name)
			}
		}
		for _, name := range test.no {
			if allows(t, list, name) {
				t.Errorf("%q lets %q in", test.pattern, name)
			}
		}
	}
}

// TestPatternsAreAnchored finds no name that a pattern of a domain lets in but those of that domain.
func TestPatternsAreAnchored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[a-z+.*@|\\n-]{0,12}@example\.com(\.attacker\.com|@[a-z]{0,3}|[\s.|/x]{0,2})?`),
		).Draw(t, "name")
		local, ok := strings.CutSuffix(strings.ToLower(strings.TrimSpace(name)), "@example.com")
		in := ok && local != "" && !strings.Contains(local, "@")
		if got := allows(t, []string{"*@example.com"}, name); got && !in {
			t.Errorf("%q is let in", name)
		}
	})
}

func TestListsOfRolesAreChecked(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"", " ", "*", "**", "*@", "@*", "*@*", "*@*.com", "a*b*c", "ann@", "@example.com", "a b", "ann@a@b", "a\nb"} {
		_, err := auth.New(t.Context(), auth.Options{Store: noStore{}, Roles: auth.Roles{Admin: []string{pattern}}})
		if err == nil || !strings.HasPrefix(err.Error(), "the list of the role admin: ") {
			t.Errorf("%q: error %v", pattern, err)
		}
	}
	for _, o := range []auth.Roles{{Default: "root"}, {Payload: []string{"role:root"}}, {Payload: []string{"*"}}} {
		if _, err := auth.New(t.Context(), auth.Options{Store: noStore{}, Roles: o}); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestRolesFollowFromLists(t *testing.T) {
	t.Parallel()
	lists := auth.Roles{
		Admin: []string{"root", "group:ops"}, Operator: []string{"*@example.com"}, Viewer: []string{"dev-*"},
		Payload: []string{"dev-1", "role:admin"},
	}
	none := lists
	none.Default = auth.NoRole
	for _, test := range []struct {
		roles        auth.Roles
		user, groups string
		want         auth.Audience
	}{
		{auth.Roles{}, "ann", "", auth.Everything},
		{auth.Roles{Default: auth.Viewer}, "ann", "", auth.Audience{Role: auth.Viewer, Payload: true}},
		{lists, "root", "", auth.Everything},
		{lists, "Root", "", auth.Audience{Role: auth.Viewer}}, // users of a file may differ by case only
		{lists, "ann", "web, ops", auth.Everything},
		{lists, "group:ops", "", auth.Audience{}}, // refused
		{lists, "Ann@Example.com", "", auth.Audience{Role: auth.Operator}},
		{lists, "dev-1", "", auth.Audience{Role: auth.Viewer, Payload: true}},
		{lists, "eve", "", auth.Audience{Role: auth.Viewer}},
		{none, "eve", "", auth.Audience{}},
	} {
		s, err := auth.New(t.Context(), auth.Options{Store: noStore{}, Proxy: auth.Proxy{User: "X-User", Groups: "X-Groups"}, Roles: test.roles})
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{Header: http.Header{"X-User": {test.user}}, RemoteAddr: "127.0.0.1:1"}
		if test.groups != "" {
			r.Header["X-Groups"] = []string{test.groups}
		}
		if g, _ := s.Authenticate(r); g.Audience != test.want {
			t.Errorf("%s of %q is %+v, want %+v", test.user, test.groups, g.Audience, test.want)
		}
	}
}

func TestRolesContainEachOther(t *testing.T) {
	t.Parallel()
	order := []auth.Role{"", auth.Viewer, auth.Operator, auth.Admin}
	for i, r := range order {
		for j, other := range order {
			if got := r.Covers(other); got != (i >= j) {
				t.Errorf("%q covers %q: %t", r, other, got)
			}
			everything := !slices.ContainsFunc(auth.Actions(), func(a auth.Action) bool { return other.Allows(a) && !r.Allows(a) })
			if got := r.Covers(other); got != everything {
				t.Errorf("%q covers %q: %t, its actions say %t", r, other, got, everything)
			}
		}
	}
}
