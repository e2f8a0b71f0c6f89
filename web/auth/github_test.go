package auth_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/auth"
)

func mail(address string, verified, primary bool) any {
	return map[string]any{"email": address, "verified": verified, "primary": primary}
}

// TestUsersSignInAtGitHub signs in at a GitHub of one's own, whose API is below /api/v3.
func TestUsersSignInAtGitHub(t *testing.T) {
	t.Parallel()
	active := map[string]any{"state": "active"}
	for name, test := range map[string]struct {
		mails  []any
		groups []string
		roles  auth.Roles
		allow  []string
		want   string
	}{
		"mail":             {mails: []any{mail("ann@example.com", true, true)}, allow: []string{"*@example.com"}, want: "Ann by github as admin with payloads"},
		"second mail":      {mails: []any{mail("ann@home.example", true, true), mail("Ann@Example.com", true, false)}, allow: []string{"*@example.com"}, want: "Ann by github as admin with payloads"},
		"unverified mail":  {mails: []any{mail("ann@home.example", true, true), mail("ann@example.com", false, false)}, allow: []string{"*@example.com"}, want: "Sign in: Ann may not use this dashboard. [Example]"},
		"no verified mail": {mails: []any{mail("ann@example.com", false, true)}, allow: []string{"*@example.com"}, want: "Sign in: Example could not confirm who you are; the log says why. [Example]"},
		"login":            {mails: []any{mail("ann@home.example", true, true)}, roles: auth.Roles{Operator: []string{"github:ANN"}}, want: "Ann by github as operator with payloads"},
		"name of a login":  {mails: []any{mail("ann@home.example", true, true)}, roles: auth.Roles{Operator: []string{"Ann"}}, want: "Sign in: Ann may not use this dashboard. [Example]"},
		"organisation":     {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"acme"}, want: "Ann by github as admin with payloads"},
		"other case":       {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"acme"}, roles: auth.Roles{Viewer: []string{"group:acme"}}, want: "Ann by github as viewer with payloads"},
		"invited":          {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"invited"}, want: "Sign in: Ann may not use this dashboard. [Example]"},
		"no organisation":  {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"other"}, want: "Sign in: Ann may not use this dashboard. [Example]"},
		"team":             {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"other", "acme/sre"}, want: "Ann by github as admin with payloads"},
		"no team":          {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"acme/web"}, want: "Sign in: Ann may not use this dashboard. [Example]"},
		"tricky team":      {mails: []any{mail("ann@home.example", true, true)}, groups: []string{"acme/../../user"}, want: "Sign in: Ann may not use this dashboard. [Example]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := newProviderSite(t, auth.KindGitHub, func(o *auth.Options) {
				o.Providers[0].Groups, o.Roles, o.Allow = test.groups, test.roles, test.allow
			})
			p.API = map[string]any{
				"/user": map[string]any{"login": "Ann"}, "/user/emails": test.mails,
				"/user/memberships/orgs/acme": active, "/user/memberships/orgs/invited": map[string]any{"state": "pending"},
				"/orgs/acme/teams/sre/memberships/Ann": active,
			}
			if _, got := s.get(browser(t), "/login/main"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if p.Refused != "" && strings.HasPrefix(test.want, "Ann") {
				t.Error(p.Refused)
			}
		})
	}
}
