package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Methods of Grant.
const (
	methodNone   = "none"
	methodBasic  = "basic"
	methodOIDC   = "oidc"
	methodGitHub = "github"
	methodProxy  = "proxy"
	methodToken  = "token"
)

// Options of a Service. With none of HtpasswdFile, Users, Providers and Proxy, nobody signs in, and everybody may see and do
// everything.
type Options struct {
	Store  history.Credentials // required
	Shared bool                // other processes sign users in and out with Store too
	Audit  history.AuditLog    // nil records nothing
	Prefix string              // path that Umbel is mounted under, such as /ops/celery, or empty

	HtpasswdFile string   // with passwords in bcrypt; it is read again when it changes
	Users        []string // user:password, as Flower's basic_auth has them
	Providers    []Provider
	Proxy        Proxy
	// RedirectURI is the address of /login that providers send browsers back to, as it is registered there. Empty means the one
	// below the address that the browser asks for.
	RedirectURI string
	// Allow lists the e-mail addresses that may sign in through providers, as ann@example.com or *@example.com. Empty means any.
	Allow []string
	Roles Roles
	// Clusters are the names of those that users sign in to at once; empty where there is one without a name. In returns the service
	// of each.
	Clusters []string

	// TrustedProxies are the networks of proxies that are believed who the user is, and where and how they ask; loopback if nil.
	TrustedProxies []netip.Prefix

	SessionIdle time.Duration // end of sessions that are not used, 24 h if zero
	SessionMax  time.Duration // end of all sessions, 7 days if zero

	Client *http.Client     // for providers, one with bounds if nil
	Now    func() time.Time // time.Now if nil
	Logger *slog.Logger     // nil discards
}

// Proxy says in which headers trusted proxies pass who makes a request.
type Proxy struct {
	User   string // such as X-Forwarded-User; empty if none does
	Groups string // names separated by commas, such as X-Forwarded-Groups; may be empty
}

// Service signs users in, keeps their sessions and API tokens, and finds the grant of each request. It is safe for concurrent
// use.
type Service struct {
	o         Options
	log       *slog.Logger
	now       func() time.Time
	roles     roles          // where there is one cluster
	clusters  []clusterRoles // where there are several
	cluster   string         // that this is the service of, by In
	above     *Service       // that In was called of
	allow     patterns
	passwords *passwords // nil if there are none
	providers []*provider
	sealer    *sealer
	sessions  *sessions
	tokens    *tokens
	others    *others // nil if no other process uses the store
	ended     *notice

	addresses, users, known *limiter
	scripts                 *limiter // of audit records for those who send their password with each request
}

// New validates o and reads passwords, sessions and tokens. Run should follow.
func New(ctx context.Context, o Options) (*Service, error) {
	if o.Store == nil {
		return nil, errors.New("signing in needs a store")
	}
	s, err := configure(o)
	if err != nil {
		return nil, err
	}
	if o.HtpasswdFile != "" || len(o.Users) > 0 {
		if s.passwords, err = newPasswords(o.HtpasswdFile, o.Users, s.ended.tell, s.log); err != nil {
			return nil, err
		}
	}
	if s.sessions, err = newSessions(ctx, o.Store, s.o.SessionIdle, s.o.SessionMax, s.ended.tell, s.now()); err != nil {
		return nil, err
	}
	if s.tokens, err = newTokens(ctx, o.Store, s.ended.tell); err != nil {
		return nil, err
	}
	if o.Shared {
		s.others = &others{}
	}
	return s, nil
}

// Validate reports what is wrong with o, before there is a store. It reads no passwords.
func (o Options) Validate() error {
	_, err := configure(o)
	return err
}

// configure returns a service that has read nothing yet.
func configure(o Options) (*Service, error) {
	s := &Service{o: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), now: o.Now, sealer: newSealer(o), ended: new(notice)}
	if s.now == nil {
		s.now = time.Now
	}
	s.o.Prefix = strings.TrimRight("/"+strings.Trim(o.Prefix, "/"), "/")
	s.o.SessionIdle, s.o.SessionMax = cmp.Or(o.SessionIdle, 24*time.Hour), cmp.Or(o.SessionMax, 7*24*time.Hour)
	if s.o.TrustedProxies == nil {
		s.o.TrustedProxies = loopback()
	}
	if s.o.Client == nil {
		s.o.Client = newClient()
	}
	s.addresses, s.users = newLimiter(addressBurst, addressEvery), newLimiter(userBurst, userEvery)
	s.known, s.scripts = newLimiter(1, 30*24*time.Hour), newLimiter(1, time.Hour)
	var err error
	if len(o.Clusters) > 0 {
		s.clusters, err = newClusterRoles(o.Roles, o.Clusters)
	} else {
		s.roles, err = newRoles(o.Roles)
	}
	if err != nil {
		return nil, err
	}
	if s.allow, err = parsePatterns(o.Allow); err != nil {
		return nil, fmt.Errorf("the list of allowed addresses: %w", err)
	}
	if err := s.addProviders(); err != nil {
		return nil, err
	}
	if o.Proxy.Groups != "" && o.Proxy.User == "" {
		return nil, errors.New("a header for groups needs one for users")
	}
	return s, nil
}

// Configured reports whether users have to sign in.
func (s *Service) Configured() bool {
	return s.passwords != nil || len(s.providers) > 0 || s.o.Proxy.User != ""
}

// browsers reports whether there is a page to sign in.
func (s *Service) browsers() bool { return s.passwords != nil || len(s.providers) > 0 }

// SignInPath implements Challenger.
func (s *Service) SignInPath() string {
	if s.browsers() {
		return "/login"
	}
	return ""
}

// Challenge implements Challenger.
func (s *Service) Challenge() string {
	switch {
	case s.passwords != nil:
		return `Basic realm="Umbel", charset="UTF-8"`
	case s.Configured():
		return `Bearer realm="Umbel"`
	}
	return ""
}

// Run saves when sessions and tokens were used and forgets those that have ended, until ctx ends. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-tick.C:
			s.save(ctx)
		case <-look.C:
			s.refresh(ctx)
		case <-ctx.Done():
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			s.save(late)
			return nil
		}
	}
}

func (s *Service) save(ctx context.Context) {
	if err := errors.Join(s.sessions.save(ctx, s.now()), s.tokens.save(ctx)); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "sessions and tokens cannot be saved", "error", err)
	}
}

// Ended implements Ender.
func (s *Service) Ended() <-chan struct{} { return s.ended.wait() }

// Authenticate implements Authenticator. It is called for every request.
func (s *Service) Authenticate(r *http.Request) (Grant, error) {
	g, err := s.identified(r)
	g.Address = s.address(r).String()
	if err == nil && g.Role == "" && len(g.Clusters) > 0 { // signed in, and not here
		return Grant{Address: g.Address}, NoCluster(s.cluster)
	}
	if s.cluster == "" {
		g.Audience.Clusters = strings.Join(g.Clusters, ",")
	}
	return g, err
}

func (s *Service) identified(r *http.Request) (Grant, error) {
	if len(r.Header.Values("Authorization")) > 1 {
		return Grant{}, &Error{Status: http.StatusBadRequest, Message: "The header Authorization is given twice."}
	}
	proxied, err := s.proxied(r)
	if err != nil {
		return Grant{}, err
	}
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(value, tokenPrefix):
		return s.byToken(r, value)
	case strings.EqualFold(scheme, "Basic") && s.passwords != nil:
		user, password, ok := r.BasicAuth()
		if !ok {
			return Grant{}, &Error{Status: http.StatusUnauthorized, Message: "The header Authorization cannot be decoded."}
		}
		i, err := s.checkPassword(r, user, password)
		if err != nil {
			return Grant{}, err
		}
		g, err := s.granted(i)
		if err == nil && s.scripts.take(limitedBy(s.address(r))+"\x00"+user, s.now()) == 0 {
			s.record(r, history.AuditRecord{Kind: history.AuditLogin, Action: "login", Actor: g.User, Method: g.Method, Role: string(g.Role)}, nil)
		}
		return g, err
	case !s.Configured():
		g := Grant{Method: methodNone}
		s.entitleAll(&g, Everything)
		return g, nil
	case proxied != nil:
		return s.granted(*proxied)
	}
	return s.bySession(r)
}

// grant returns what an identity may see and do by the options of now. It has no role if that is nothing.
func (s *Service) grant(i *identity) Grant {
	g := Grant{User: i.User, Method: i.Method}
	anybody := false
	switch i.Method {
	case methodBasic:
		if s.passwords == nil || !s.passwords.current(i.User, i.Proof, s.now()) {
			return Grant{}
		}
	case methodProxy:
		if s.o.Proxy.User == "" {
			return Grant{}
		}
	default:
		p := s.provider(i.Provider)
		if p == nil || !p.allows(i, s.allow) {
			return Grant{}
		}
		anybody = len(s.allow) == 0 && len(p.Groups) == 0
	}
	s.entitle(&g, i.names(), anybody)
	return g
}

// granted is the grant of an identity that was just established, an error if it is nothing.
func (s *Service) granted(i identity) (Grant, error) {
	g := s.grant(&i)
	switch {
	case g.Role == "" && len(g.Clusters) > 0:
		return Grant{}, NoCluster(s.cluster)
	case g.Role == "":
		return Grant{}, &Error{Status: http.StatusForbidden, Message: i.User + " may not use this dashboard."}
	}
	return g, nil
}

// proxied returns who a trusted proxy says makes a request, nil if none does. Headers of others are refused, since who sends
// them either tries to be somebody else or needs to be told what is wrong.
func (s *Service) proxied(r *http.Request) (*identity, error) {
	name, groups := s.o.Proxy.User, s.o.Proxy.Groups
	if name == "" {
		return nil, nil //nolint:nilnil // nobody
	}
	users := r.Header.Values(name)
	var listed []string
	if groups != "" {
		listed = r.Header.Values(groups)
	}
	switch {
	case len(users) == 0 && len(listed) == 0:
		return nil, nil //nolint:nilnil // nobody
	case !s.trusts(peer(r)):
		s.refused(r, "", methodProxy, "header from an untrusted address")
		return nil, &Error{Status: http.StatusForbidden, Message: fmt.Sprintf(
			"The header %s came from %s, which is not a trusted proxy; see --trusted-proxies.", name, peer(r))}
	case len(users) != 1:
		return nil, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(
			"The header %s is given %d times: the proxy must replace the one that clients send.", name, len(users))}
	case strings.TrimSpace(users[0]) == "":
		return nil, nil //nolint:nilnil // nobody
	}
	i := &identity{Method: methodProxy, User: strings.TrimSpace(users[0])}
	for g := range strings.SplitSeq(strings.Join(listed, ","), ",") {
		if g = strings.TrimSpace(g); g != "" {
			i.Groups = append(i.Groups, g)
		}
	}
	if err := i.check(); err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Message: fmt.Sprintf("In the header %s, %v.", name, err)}
	}
	return i, nil
}

// redirectURI is where a provider sends the browser back to.
func (s *Service) redirectURI(r *http.Request) string {
	if s.o.RedirectURI != "" {
		return s.o.RedirectURI
	}
	u := url.URL{Scheme: "http", Host: r.Host, Path: s.o.Prefix + "/login"}
	if s.secure(r) {
		u.Scheme = "https"
	}
	return u.String()
}
