package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Kinds of providers.
const (
	KindOIDC     = "oidc"
	KindGoogle   = "google"
	KindGitLab   = "gitlab"
	KindOkta     = "okta"
	KindKeycloak = "keycloak"
	KindGitHub   = "github"
)

// Provider is where users sign in with OpenID Connect, or with OAuth at GitHub.
type Provider struct {
	Kind  string `json:"kind"`  // one of the kinds; empty is KindOIDC
	Name  string `json:"name"`  // in addresses: lower-case letters, digits and hyphens; the kind if empty
	Label string `json:"label"` // on the button; the kind's if empty
	// Issuer is the address of the provider. Google, GitLab and GitHub have one of their own, which others of GitLab and GitHub
	// replace: https://gitlab.example.com. Okta's may be Flower's base URL. Keycloak's ends in /realms/ and a name.
	Issuer       string   `json:"issuer"`
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret"`
	Scopes       []string `json:"scopes"` // beside those that are needed
	// Groups are those of which users must be in one: organisations and teams (org, org/team) of GitHub, full paths of groups of
	// GitLab, values of GroupsClaim of others. Empty asks for none.
	Groups      []string `json:"groups"`
	GroupsClaim string   `json:"groups_claim"` // groups if empty
	// MinAccessLevel is the level that counts as being in a group of GitLab: 10 guest, 20 reporter, 30 developer, 40 maintainer,
	// 50 owner; 20 if zero.
	MinAccessLevel int `json:"min_access_level"`
}

// provider is a Provider in use.
type provider struct {
	Provider
	client *http.Client

	mu       sync.Mutex
	found    *oidc.Provider // nil until its description was read
	failed   error
	failedAt time.Time
}

var providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

const maxProviders = 10

// addProviders checks the providers of the options.
func (s *Service) addProviders() error {
	if len(s.o.Providers) > maxProviders {
		return fmt.Errorf("there are more than %d providers to sign in with", maxProviders)
	}
	for _, o := range s.o.Providers {
		p, err := newProvider(o, s.o.Client)
		if err != nil {
			return err
		}
		if s.provider(p.Name) != nil {
			return fmt.Errorf("two providers to sign in with are called %s", p.Name)
		}
		open := len(s.allow) == 0 && len(p.Groups) == 0 && s.o.Roles.Default == ""
		if r := s.o.Roles; open && len(r.Admin)+len(r.Operator)+len(r.Viewer) == 0 {
			return fmt.Errorf("anybody with an account at %s could sign in: list addresses, groups or roles, or set the default role", p.Label)
		}
		s.providers = append(s.providers, p)
	}
	if s.o.RedirectURI != "" {
		u, err := url.Parse(s.o.RedirectURI)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || !strings.HasSuffix(u.Path, "/login") {
			return fmt.Errorf("the redirect URI %q is not of the form https://host/login", s.o.RedirectURI)
		}
	}
	return nil
}

func (s *Service) provider(name string) *provider {
	for _, p := range s.providers {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func newProvider(o Provider, client *http.Client) (*provider, error) {
	o.Kind = cmp.Or(o.Kind, KindOIDC)
	own := map[string]struct{ label, issuer string }{
		KindOIDC: {label: "OpenID Connect"}, KindGoogle: {"Google", "https://accounts.google.com"}, KindGitLab: {"GitLab", "https://gitlab.com"},
		KindOkta: {label: "Okta"}, KindKeycloak: {label: "Keycloak"}, KindGitHub: {"GitHub", "https://github.com"},
	}
	preset, ok := own[o.Kind]
	if !ok {
		return nil, fmt.Errorf("the kind of provider %q is none of oidc, google, gitlab, okta, keycloak and github", o.Kind)
	}
	o.Name, o.Label = cmp.Or(o.Name, o.Kind), cmp.Or(o.Label, preset.label)
	o.Issuer = cmp.Or(strings.TrimRight(o.Issuer, "/"), preset.issuer)
	o.GroupsClaim, o.MinAccessLevel = cmp.Or(o.GroupsClaim, "groups"), cmp.Or(o.MinAccessLevel, 20)
	if o.Kind == KindOkta { // Flower's base URL of the organisation's own server is below its issuer
		o.Issuer = strings.TrimSuffix(o.Issuer, "/oauth2")
	}
	u, err := url.Parse(o.Issuer)
	switch {
	case !providerName.MatchString(o.Name):
		return nil, fmt.Errorf("the name of the provider %q is not of lower-case letters, digits and hyphens", o.Name)
	case o.Issuer == "":
		return nil, fmt.Errorf("%s needs the address of its issuer", o.Label)
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("the issuer %q is not of the form https://host/path", u.Redacted())
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, fmt.Errorf("the issuer %s must be reached by https", o.Issuer)
	case o.Kind == KindKeycloak && !strings.Contains(u.Path, "/realms/"):
		return nil, fmt.Errorf("the issuer %s of Keycloak does not end in /realms/ and the name of a realm", o.Issuer)
	case o.ClientID == "" || o.ClientSecret == "":
		return nil, fmt.Errorf("%s needs the ID and the secret of a client", o.Label)
	}
	return &provider{Provider: o, client: client}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// allows reports whether an identity of this provider may sign in.
func (p *provider) allows(i *identity, allow patterns) bool {
	if len(allow) > 0 && !allow.match(i.Mails) {
		return false
	}
	return len(p.Groups) == 0 || slices.ContainsFunc(p.Groups, func(g string) bool {
		return slices.ContainsFunc(i.Groups, func(of string) bool {
			return of == g || p.Kind == KindGitHub && strings.EqualFold(of, g)
		})
	})
}

// discover returns the description that an OpenID Connect provider publishes. It is read when it is needed, so that Umbel starts
// while the provider is away.
func (p *provider) discover(ctx context.Context, now time.Time) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	const again = 5 * time.Second
	if p.failed != nil && now.Sub(p.failedAt) < again {
		return nil, p.failed
	}
	// The context stays with the provider, which reads new keys with its client.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
	if err != nil {
		p.failed, p.failedAt = fmt.Errorf("read the description of %s: %w", p.Issuer, err), now
		return nil, p.failed
	}
	p.found = found
	return found, nil
}

// config returns how to sign in.
func (p *provider) config(ctx context.Context, redirect string, now time.Time) (*oauth2.Config, error) {
	c := &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: redirect}
	if p.Kind == KindGitHub {
		c.Endpoint = oauth2.Endpoint{AuthURL: p.Issuer + "/login/oauth/authorize", TokenURL: p.Issuer + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams}
		c.Scopes = []string{"user:email"}
		if len(p.Groups) > 0 {
			c.Scopes = append(c.Scopes, "read:org")
		}
	} else {
		found, err := p.discover(ctx, now)
		if err != nil {
			return nil, err
		}
		c.Endpoint = found.Endpoint()
		c.Scopes = []string{oidc.ScopeOpenID, "email", "profile"}
		if p.Kind == KindGitLab && len(p.Groups) > 0 {
			c.Scopes = append(c.Scopes, "read_api")
		}
	}
	for _, scope := range p.Scopes {
		if !slices.Contains(c.Scopes, scope) {
			c.Scopes = append(c.Scopes, scope)
		}
	}
	return c, nil
}

// newClient returns a client for providers with a bound for time and size.
func newClient() *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: boundedTransport{http.DefaultTransport}}
}

// boundedTransport ends responses that are too long.
type boundedTransport struct{ next http.RoundTripper }

const maxResponse = 1 << 20

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{response.Body, maxResponse}
	return response, nil
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the response is longer than 1 MiB")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
