package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/umbelhq/umbel/web/auth"
)

// authFlags say who may use the dashboard.
type authFlags struct {
	Htpasswd    string   `env:"UMBEL_HTPASSWD" placeholder:"FILE" help:"Users with passwords, as htpasswd -B writes them. Read again when it changes."`
	BasicAuth   []string `env:"UMBEL_BASIC_AUTH" placeholder:"USER:PASSWORD" help:"User with a password, as in Flower. Others can read a command line: prefer the variable, or --htpasswd. Repeatable."`
	Provider    string   `name:"sign-in-with" env:"UMBEL_SIGN_IN_WITH" placeholder:"KIND" enum:",google,gitlab,okta,keycloak,oidc,github" help:"Where users sign in: google, gitlab, okta, keycloak, oidc (any other provider of OpenID Connect) or github."`
	Issuer      string   `env:"UMBEL_ISSUER" placeholder:"URL" help:"Address of the provider, such as https://id.example.com/realms/main. Not needed for google, gitlab.com and github.com."`
	ClientID    string   `name:"client-id" env:"UMBEL_CLIENT_ID" placeholder:"ID" help:"ID of Umbel at the provider."`
	Secret      string   `name:"client-secret" env:"UMBEL_CLIENT_SECRET" placeholder:"SECRET" help:"Secret of Umbel at the provider. Prefer the variable, or --client-secret-file."`
	SecretFile  string   `name:"client-secret-file" env:"UMBEL_CLIENT_SECRET_FILE" placeholder:"FILE" help:"File with that secret."`
	RedirectURI string   `name:"redirect-uri" env:"UMBEL_REDIRECT_URI" placeholder:"URL" help:"Address of /login as it is registered at the provider. By default the one below the address that the browser asks for."`
	Allow       []string `env:"UMBEL_ALLOW" placeholder:"PATTERN" help:"E-mail address that may sign in through the provider, such as ann@example.com or *@example.com. Repeatable."`
	Groups      []string `name:"require-group" env:"UMBEL_REQUIRE_GROUP" placeholder:"GROUP" help:"Group of which users must be in one: organisation or org/team of GitHub, path of a group of GitLab, else a value of --groups-claim. Repeatable."`
	GroupsClaim string   `env:"UMBEL_GROUPS_CLAIM" placeholder:"NAME" default:"groups" help:"Claim with the groups of a user."`
	Providers   string   `name:"providers-file" env:"UMBEL_PROVIDERS_FILE" placeholder:"FILE" help:"Further places where users sign in: a JSON list of objects with kind, name, label, issuer, client_id, client_secret, scopes, groups, groups_claim and min_access_level."`
	GitLabLevel int      `name:"gitlab-min-access-level" env:"UMBEL_GITLAB_MIN_ACCESS_LEVEL" placeholder:"N" default:"20" help:"Access level in GitLab that counts as being in a group: 10 guest to 50 owner."`

	UserHeader     string   `env:"UMBEL_USER_HEADER" placeholder:"NAME" help:"Header in which an authenticating proxy passes the user, such as X-Forwarded-User; it must replace the client's own. Requests without it need another way to sign in."`
	GroupsHeader   string   `env:"UMBEL_GROUPS_HEADER" placeholder:"NAME" help:"Header in which that proxy passes the groups of the user, separated by commas."`
	TrustedProxies []string `env:"UMBEL_TRUSTED_PROXIES" placeholder:"NETWORK" help:"Address or network of proxies whose headers are believed, such as 10.0.0.0/8. By default loopback. Repeatable."`

	Admin       []string `env:"UMBEL_ADMIN" placeholder:"PATTERN" help:"User with the role admin: name, e-mail address, github:LOGIN or group:NAME, with one * before the @. Repeatable."`
	Operator    []string `env:"UMBEL_OPERATOR" placeholder:"PATTERN" help:"User with the role operator. Repeatable."`
	Viewer      []string `env:"UMBEL_VIEWER" placeholder:"PATTERN" help:"User with the role viewer. Repeatable."`
	DefaultRole string   `env:"UMBEL_DEFAULT_ROLE" enum:",none,viewer,operator,admin" placeholder:"ROLE" help:"Role of other users: none, viewer, operator or admin. By default viewer if roles are listed, else admin; none if anybody could have an account at the provider."`
	PayloadFor  []string `env:"UMBEL_PAYLOAD_FOR" placeholder:"PATTERN" help:"User who may see arguments and results, or role:operator for a role and those above. By default everybody. Repeatable."`

	SessionIdle time.Duration `env:"UMBEL_SESSION_IDLE" default:"24h" help:"End of sessions that are not used."`
	SessionMax  time.Duration `env:"UMBEL_SESSION_MAX" default:"168h" help:"End of all sessions."`
}

// configured reports whether users have to sign in.
func (f *authFlags) configured() bool {
	return f.Htpasswd != "" || len(f.BasicAuth) > 0 || f.Provider != "" || f.Providers != "" || f.UserHeader != ""
}

// signIn returns the options of package auth.
func (f *authFlags) signIn() (auth.Options, error) {
	o := auth.Options{
		HtpasswdFile: f.Htpasswd, Users: f.BasicAuth, RedirectURI: f.RedirectURI, Allow: f.Allow,
		Proxy: auth.Proxy{User: f.UserHeader, Groups: f.GroupsHeader},
		Roles: auth.Roles{
			Admin: f.Admin, Operator: f.Operator, Viewer: f.Viewer, Default: auth.Role(f.DefaultRole), Payload: f.PayloadFor,
		},
		SessionIdle: f.SessionIdle, SessionMax: f.SessionMax,
	}
	if !f.configured() {
		return o, f.unused()
	}
	if f.SessionIdle <= 0 || f.SessionMax <= 0 {
		return o, errors.New("--session-idle and --session-max must be more than 0")
	}
	var err error
	if len(f.TrustedProxies) > 0 {
		if o.TrustedProxies, err = auth.ParseNetworks(f.TrustedProxies); err != nil {
			return o, fmt.Errorf("--trusted-proxies: %w", err)
		}
	}
	o.Providers, err = f.providers()
	if err == nil && len(o.Providers) == 0 && len(f.Allow) > 0 {
		err = errors.New("--allow needs --sign-in-with")
	}
	return o, err
}

// providers returns where users sign in: the provider of the flags, and those of the file.
func (f *authFlags) providers() (list []auth.Provider, err error) {
	if f.Providers != "" {
		text, err := os.ReadFile(f.Providers)
		if err != nil {
			return nil, fmt.Errorf("--providers-file: %w", err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&list); err != nil {
			return nil, fmt.Errorf("--providers-file %s: %w", f.Providers, err)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("--providers-file %s names no provider", f.Providers)
		}
	}
	if f.Provider == "" {
		if f.Issuer != "" || f.ClientID != "" || len(f.Groups) > 0 {
			return nil, errors.New("--issuer, --client-id and --require-group need --sign-in-with")
		}
		return list, nil
	}
	secret := f.Secret
	if f.SecretFile != "" {
		text, err := os.ReadFile(f.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("--client-secret-file: %w", err)
		}
		secret = strings.TrimSpace(string(text))
	}
	return append([]auth.Provider{{
		Kind: f.Provider, Issuer: f.Issuer, ClientID: f.ClientID, ClientSecret: secret, Groups: f.Groups,
		GroupsClaim: f.GroupsClaim, MinAccessLevel: f.GitLabLevel,
	}}, list...), nil
}

// unused refuses what would have no effect, so that nobody believes to be protected.
func (f *authFlags) unused() error {
	lists := cmp.Or(len(f.Admin), len(f.Operator), len(f.Viewer), len(f.PayloadFor), len(f.Allow), len(f.Groups))
	if lists > 0 || f.DefaultRole != "" || f.Issuer != "" || f.ClientID != "" || f.GroupsHeader != "" {
		return errors.New("roles and providers have no effect while nobody signs in: " +
			"add --htpasswd, --basic-auth, --sign-in-with or --user-header")
	}
	return nil
}

// plain reports whether passwords and cookies could be read on the way to an address.
func plain(address string, tls bool) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && !tls && host != "localhost" && (ip == nil || !ip.IsLoopback())
}
