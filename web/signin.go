package web

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
)

// signInPages are those of auth.Service, which it has drawn here.
type signInPages struct {
	h       *Handler
	service *auth.Service
}

var _ auth.Pages = (*signInPages)(nil)

// route registers them. Whoever is not signed in gets to those that sign in, and whoever is may sign out.
func (p *signInPages) route(r router) {
	r.get("/login", auth.Open, func(w http.ResponseWriter, r *http.Request) { p.service.ServeSignIn(w, r, p) })
	r.post("/login", auth.Open, func(w http.ResponseWriter, r *http.Request) { p.service.ServePassword(w, r, p) })
	r.get("/login/{provider}", auth.Open, func(w http.ResponseWriter, r *http.Request) {
		p.service.ServeProvider(w, r, p, chi.URLParam(r, "provider"))
	})
	r.post("/logout", auth.Open, func(w http.ResponseWriter, r *http.Request) { p.service.ServeSignOut(w, r, p, false) })
	r.post("/logout/everywhere", auth.Open, func(w http.ResponseWriter, r *http.Request) { p.service.ServeSignOut(w, r, p, true) })
	if !p.service.Configured() {
		return
	}
	r.get("/tokens", auth.View, func(w http.ResponseWriter, r *http.Request) { p.service.ServeTokens(w, r, p) })
	r.post("/tokens", auth.View, func(w http.ResponseWriter, r *http.Request) { p.service.ServeCreateToken(w, r, p) })
	r.post("/tokens/revoke", auth.View, func(w http.ResponseWriter, r *http.Request) { p.service.ServeRevokeToken(w, r, p) })
}

// SignIn implements auth.Pages.
func (p *signInPages) SignIn(w http.ResponseWriter, r *http.Request, status int, v auth.SignInPage) {
	view := templates.SignIn{Password: v.Password, Next: v.Next, User: v.User, Message: v.Message}
	for _, l := range v.Providers {
		view.Providers = append(view.Providers, templates.Link{Text: l.Label, Href: l.Href})
	}
	p.h.nobody.show(w, r, page{url: "/login", static: true, status: status, title: "Sign in", view: view})
}

// Tokens implements auth.Pages.
func (p *signInPages) Tokens(w http.ResponseWriter, r *http.Request, status int, v auth.TokensPage) {
	view := templates.Tokens{
		Everyone: v.Everyone, CanMake: v.CanMake, Payload: v.Payload, SignOut: v.SignOut, Secret: v.Secret, Message: v.Message,
		Name: v.Name, Days: v.Days,
	}
	for _, role := range v.Roles {
		view.Roles = append(view.Roles, string(role))
	}
	for _, t := range v.Tokens {
		view.Tokens = append(view.Tokens, templates.APIToken{
			ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Owner: auth.TokenOwner(t), Role: t.Role, Payload: t.Payload,
			Expired: !v.Now.Before(t.ExpiresAt), CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, UsedAt: t.UsedAt,
		})
	}
	p.h.shownTo(r, p.h.pages).show(w, r, page{url: "/tokens", static: true, status: status, title: "API tokens", section: templates.SectionSettings, view: view})
}

// Problem implements auth.Pages.
func (p *signInPages) Problem(w http.ResponseWriter, r *http.Request, status int, title, message string) {
	p.h.shownTo(r, p.h.pages).problem(w, r, status, templates.Problem{Title: title, Message: message})
}

// Back implements auth.Pages.
func (p *signInPages) Back(target string) string { return p.h.back(target) }

// user is who looks at a page, for its header.
func (p *common) user(r *http.Request) templates.User {
	g := auth.FromContext(r.Context())
	u := templates.User{Name: g.User, Role: string(g.Role), Payload: g.Payload}
	if p.overall != nil {
		u.Role = "by cluster"
	}
	if p.signedIn != nil && p.signedIn.service.Configured() {
		u.Tokens, u.SignOut = true, p.signedIn.service.HasSession(r)
	}
	return u
}
