package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/oauth2"

	"github.com/umbelhq/umbel/monitor/history"
)

// Pages draws what the service shows to browsers.
type Pages interface {
	SignIn(w http.ResponseWriter, r *http.Request, status int, v SignInPage)
	Tokens(w http.ResponseWriter, r *http.Request, status int, v TokensPage)
	// Problem shows why a request failed.
	Problem(w http.ResponseWriter, r *http.Request, status int, title, message string)
	// Back returns target if it is an address below the prefix, else that of the overview.
	Back(target string) string
}

// SignInPage is the page on which users sign in.
type SignInPage struct {
	Password  bool // there are users with passwords
	Providers []ProviderLink
	Next      string // path and query to come back to
	User      string // as it was entered
	Message   string // why it failed, empty if nothing has
}

// ProviderLink leads to a provider.
type ProviderLink struct{ Label, Href string }

// loginAge is how long a user may take at a provider.
const loginAge = 10 * time.Minute

// loginCookie and the beginning of a state name what a browser knows of one sign-in at a provider, so that several can go on in
// several tabs.
const loginCookie = "umbel_login_"

// login is one sign-in at a provider.
type login struct {
	Provider string    `json:"p"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Redirect string    `json:"r"`
	Next     string    `json:"b"`
	At       time.Time `json:"t"`
}

// ServeSignIn shows the page to sign in, and takes the answers of providers, which come to the same address.
func (s *Service) ServeSignIn(w http.ResponseWriter, r *http.Request, p Pages) {
	query := r.URL.Query()
	if query.Has("code") || query.Has("state") || query.Has("error") {
		s.serveCallback(w, r, p)
		return
	}
	next := p.Back(query.Get("next"))
	if g, err := s.Authenticate(r); err == nil && g.Role != "" {
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // Back leads to no other host
		return
	}
	if hash, ok := s.cookieHash(r); ok {
		if i, _ := s.sessions.find(hash, s.now()); i != nil && s.grant(i).Role == "" {
			s.showSignIn(w, r, p, http.StatusOK, SignInPage{Next: next, Message: i.User + " may not use this dashboard any more."})
			return
		}
	}
	s.showSignIn(w, r, p, http.StatusOK, SignInPage{Next: next})
}

func (s *Service) showSignIn(w http.ResponseWriter, r *http.Request, p Pages, status int, v SignInPage) {
	v.Password = s.passwords != nil
	for _, provider := range s.providers {
		href := s.o.Prefix + "/login/" + provider.Name + "?" + url.Values{"next": {v.Next}}.Encode()
		v.Providers = append(v.Providers, ProviderLink{provider.Label, href})
	}
	if !s.browsers() {
		p.Problem(w, r, http.StatusNotFound, "Not found", "Nobody signs in to this dashboard here.")
		return
	}
	p.SignIn(w, r, status, v)
}

// ServePassword signs a user in with a password from the form.
func (s *Service) ServePassword(w http.ResponseWriter, r *http.Request, p Pages) {
	if s.passwords == nil {
		s.showSignIn(w, r, p, http.StatusNotFound, SignInPage{Next: p.Back("")})
		return
	}
	user, next := r.PostFormValue("user"), p.Back(r.PostFormValue("next"))
	i, err := s.checkPassword(r, user, r.PostFormValue("password"))
	if err == nil {
		_, err = s.granted(i)
	}
	if err != nil {
		status := http.StatusUnauthorized
		if wrong, ok := errors.AsType[*Error](err); ok {
			status = wrong.Status
			retryAfter(w, wrong.RetryAfter)
		}
		s.showSignIn(w, r, p, status, SignInPage{Next: next, User: cut(user, maxName), Message: err.Error()})
		return
	}
	s.finish(w, r, p, i, next)
}

func retryAfter(w http.ResponseWriter, wait time.Duration) {
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
}

// finish begins the session of a user who may use the dashboard.
func (s *Service) finish(w http.ResponseWriter, r *http.Request, p Pages, i identity, next string) {
	if err := s.signIn(w, r, i); err != nil {
		s.log.ErrorContext(r.Context(), "session cannot be stored", "error", err)
		p.Problem(w, r, http.StatusServiceUnavailable, "Not signed in", "The session could not be stored. Try again, and see the log.")
		return
	}
	http.Redirect(w, r, p.Back(next), http.StatusSeeOther) //nolint:gosec // Back leads to no other host
}

// ServeProvider sends the browser to a provider.
func (s *Service) ServeProvider(w http.ResponseWriter, r *http.Request, p Pages, name string) {
	provider := s.provider(name)
	if provider == nil {
		s.showSignIn(w, r, p, http.StatusNotFound, SignInPage{Next: p.Back(""), Message: "There is no such provider to sign in with."})
		return
	}
	l := login{
		Provider: name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Redirect: s.redirectURI(r),
		Next: p.Back(r.URL.Query().Get("next")), At: s.now(),
	}
	const maxNext = 1500 // bytes: browsers keep cookies of 4 KiB
	if len(l.Next) > maxNext {
		l.Next = p.Back("")
	}
	config, err := provider.config(r.Context(), l.Redirect, s.now())
	if err != nil {
		s.unavailable(w, r, p, provider, l.Next, err)
		return
	}
	sealed, err := s.sealer.seal(l)
	if err != nil {
		s.unavailable(w, r, p, provider, l.Next, err)
		return
	}
	s.setCookie(w, r, loginCookie+l.State[:8], sealed, loginAge)
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(l.Verifier)}
	if provider.Kind != KindGitHub {
		options = append(options, oauth2.SetAuthURLParam("nonce", l.Nonce))
	}
	http.Redirect(w, r, config.AuthCodeURL(l.State, options...), http.StatusSeeOther)
}

func (s *Service) unavailable(w http.ResponseWriter, r *http.Request, p Pages, provider *provider, next string, err error) {
	s.log.WarnContext(r.Context(), "provider cannot be used", "provider", provider.Name, "error", err)
	s.showSignIn(w, r, p, http.StatusBadGateway, SignInPage{Next: next, Message: provider.Label + " cannot be reached. Try again; the log says why."})
}

// serveCallback takes what a provider answers through the browser.
func (s *Service) serveCallback(w http.ResponseWriter, r *http.Request, p Pages) {
	query := r.URL.Query()
	l, err := s.takeLogin(w, r, query.Get("state"))
	if err != nil {
		s.refused(r, "", methodOIDC, err.Error())
		s.showSignIn(w, r, p, http.StatusBadRequest, SignInPage{
			Next: p.Back(""), Message: "This sign-in was not begun in this browser, or it took too long. Try again.",
		})
		return
	}
	refuse := func(status int, user, message, why string) {
		s.refused(r, user, methodOIDC, why)
		s.showSignIn(w, r, p, status, SignInPage{Next: l.Next, Message: message})
	}
	provider := s.provider(l.Provider)
	if provider == nil || len(query["code"]) > 1 {
		refuse(http.StatusBadRequest, "", "The provider to sign in with is unknown.", "unknown provider")
		return
	}
	if code := query.Get("error"); code != "" {
		refuse(http.StatusForbidden, "", provider.Label+" refused: "+cut(code, 100)+".", "the provider refused: "+cut(code, 100))
		return
	}
	if iss := query.Get("iss"); iss != "" && iss != provider.Issuer && provider.Kind != KindGitHub {
		refuse(http.StatusBadRequest, "", "Another provider answered than the one that was asked.", "issuer of another provider")
		return
	}
	i, err := s.identify(r.Context(), provider, l, query.Get("code"))
	if err != nil {
		s.log.WarnContext(r.Context(), "sign-in failed", "provider", provider.Name, "error", err)
		refuse(http.StatusForbidden, i.User, provider.Label+" could not confirm who you are; the log says why.", cut(err.Error(), 300))
		return
	}
	if err := s.tokens.own(r.Context(), i); err != nil {
		s.log.ErrorContext(r.Context(), "owner of tokens cannot be stored", "error", err)
	}
	if s.grant(&i).Role == "" {
		refuse(http.StatusForbidden, i.User, i.User+" may not use this dashboard.", "not allowed by the options")
		return
	}
	s.finish(w, r, p, i, l.Next)
}

// takeLogin returns the sign-in that a state names and this browser has begun. It can be taken once.
func (s *Service) takeLogin(w http.ResponseWriter, r *http.Request, state string) (l login, err error) {
	if len(state) != len(rand.Text()) {
		return l, errors.New("no state of a sign-in")
	}
	name := loginCookie + state[:8]
	sealed := s.cookie(r, name)
	s.setCookie(w, r, name, "", 0)
	switch {
	case sealed == "":
		return l, errors.New("state of a sign-in in another browser")
	case s.sealer.open(sealed, &l) != nil || subtle.ConstantTimeCompare([]byte(l.State), []byte(state)) != 1:
		return l, errors.New("state of another sign-in")
	case s.now().Sub(l.At) > loginAge:
		return l, errors.New("state of a sign-in that took too long")
	}
	return l, nil
}

// identify exchanges the code for who the user is.
func (s *Service) identify(ctx context.Context, provider *provider, l login, code string) (identity, error) {
	const wait = 20 * time.Second
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, provider.client), wait)
	defer cancel()
	config, err := provider.config(ctx, l.Redirect, s.now())
	if err != nil {
		return identity{}, err
	}
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(l.Verifier))
	if err != nil {
		return identity{}, err
	}
	if provider.Kind == KindGitHub {
		return provider.githubIdentity(ctx, token)
	}
	return provider.oidcIdentity(ctx, token, l.Nonce, s.now)
}

// ServeSignOut ends the session of the browser, or all of its user.
func (s *Service) ServeSignOut(w http.ResponseWriter, r *http.Request, p Pages, everywhere bool) {
	hash, ok := s.cookieHash(r)
	var i *identity
	if ok {
		i, _ = s.sessions.find(hash, s.now())
	}
	s.setCookie(w, r, sessionCookie, "", 0)
	if i != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second) // though the browser may be gone
		defer cancel()
		var err error
		if everywhere {
			var n int
			n, err = s.sessions.endAll(ctx, i.Method, i.User, s.now())
			s.record(r, history.AuditRecord{Kind: history.AuditLogout, Action: "logout everywhere", Target: i.Provider, Actor: i.User, Method: i.Method},
				map[string]any{"sessions": n})
		} else {
			err = s.sessions.end(ctx, hash, s.now())
			s.record(r, history.AuditRecord{Kind: history.AuditLogout, Action: "logout", Target: i.Provider, Actor: i.User, Method: i.Method}, nil)
		}
		if err != nil { // it is tried again each minute
			s.log.ErrorContext(r.Context(), "the end of a session cannot be stored", "error", err)
		}
	}
	http.Redirect(w, r, s.o.Prefix+"/login", http.StatusSeeOther)
}
