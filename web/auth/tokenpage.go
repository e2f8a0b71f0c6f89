package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// TokensPage lists API tokens and makes new ones.
type TokensPage struct {
	Tokens   []history.Token // newest first
	Everyone bool            // they are those of all users
	CanMake  bool            // false for those who use a token
	Roles    []Role          // that a new token may have
	Payload  bool            // a new token may see payloads
	SignOut  bool            // the user has a session
	Secret   string          // of the token just made, shown once
	Message  string          // why a form failed
	Name     string          // as it was entered
	Days     string          // as it was entered
	Now      time.Time
}

// ServeTokens shows the tokens of the user, or of everybody to those who may manage them.
func (s *Service) ServeTokens(w http.ResponseWriter, r *http.Request, p Pages) {
	s.showTokens(w, r, p, http.StatusOK, TokensPage{})
}

func (s *Service) showTokens(w http.ResponseWriter, r *http.Request, p Pages, status int, v TokensPage) {
	g := FromContext(r.Context())
	v.Everyone, v.CanMake, v.Payload, v.Now, v.Days = g.managesTokens(), g.Method != methodToken, g.Payload, s.now(), cmp.Or(v.Days, "90")
	_, v.SignOut = s.cookieHash(r)
	for _, role := range []Role{Viewer, Operator, Admin} {
		if g.Role.Covers(role) {
			v.Roles = append(v.Roles, role)
		}
	}
	if v.CanMake || v.Everyone {
		v.Tokens = s.visibleTokens(r)
	}
	p.Tokens(w, r, status, v)
}

// visibleTokens are the tokens that the user of a request may see and revoke, newest first.
func (s *Service) visibleTokens(r *http.Request) []history.Token {
	var owner *identity
	if g := FromContext(r.Context()); !g.managesTokens() {
		owner = &identity{Method: g.Method, User: g.User}
	}
	list := s.tokens.list(owner)
	slices.SortFunc(list, func(a, b history.Token) int { return cmp.Compare(b.ID, a.ID) })
	return list
}

// managesTokens reports whether a user may see and revoke those of others, which are for all clusters.
func (g Grant) managesTokens() bool {
	return g.Role.Allows(ManageTokens) && g.everywhere.Allows(ManageTokens)
}

// ServeCreateToken makes a token with at most the rights of the user.
func (s *Service) ServeCreateToken(w http.ResponseWriter, r *http.Request, p Pages) {
	g := FromContext(r.Context())
	v := TokensPage{Name: cut(r.PostFormValue("name"), maxName), Days: cut(r.PostFormValue("days"), 10)}
	secret, err := s.createToken(r, g, v)
	status := http.StatusOK
	var wrong *Error
	switch {
	case err == nil:
		v = TokensPage{Secret: secret}
	case errors.As(err, &wrong):
		status, v.Message = wrong.Status, wrong.Message
	default:
		s.log.ErrorContext(r.Context(), "token cannot be stored", "error", err)
		status, v.Message = http.StatusServiceUnavailable, "The token could not be stored. Try again, and see the log."
	}
	s.showTokens(w, r, p, status, v)
}

func (s *Service) createToken(r *http.Request, g Grant, v TokensPage) (string, error) {
	if g.Method == methodToken {
		return "", &Error{Status: http.StatusForbidden, Message: "A token cannot make tokens."}
	}
	invalid := func(why string) error { return &Error{Status: http.StatusBadRequest, Message: sentence(why)} }
	role, err := ParseRole(r.PostFormValue("role"))
	if err != nil {
		return "", invalid(err.Error())
	}
	if !g.Role.Covers(role) {
		return "", &Error{Status: http.StatusForbidden, Message: "A token can have no higher role than you."}
	}
	days, err := strconv.Atoi(strings.TrimSpace(v.Days))
	if err != nil || days < 1 || days > int(MaxTokenAge/(24*time.Hour)) {
		return "", invalid("a token is valid for 1 to 3,660 days")
	}
	if days > maxDays(g) {
		return "", invalid("your tokens are valid for at most 90 days, since Umbel does not learn when you may no longer sign in")
	}
	a := Audience{Role: role, Payload: g.Payload && r.PostFormValue("payload") != ""}
	token, secret, err := NewToken(v.Name, a, time.Duration(days)*24*time.Hour, s.now())
	if err != nil {
		return "", invalid(err.Error())
	}
	owner := s.owner(r, g)
	if len(s.tokens.list(&owner)) >= maxUserTokens {
		return "", &Error{Status: http.StatusConflict, Message: "You have 50 tokens already: revoke one first."}
	}
	token.Identity = owner.encode()
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	switch err := s.tokens.create(ctx, token); {
	case errors.Is(err, history.ErrTooManyTokens):
		return "", &Error{Status: http.StatusConflict, Message: "There are 1,000 tokens already: revoke some first."}
	case err != nil:
		return "", err
	}
	s.record(r, history.AuditRecord{Kind: history.AuditToken, Action: "create token", Target: token.Name}, map[string]any{"role": role, "payload": a.Payload, "days": days})
	return secret, nil
}

// maxDays is how long tokens of a user are valid at most.
func maxDays(g Grant) int {
	switch g.Method {
	case methodOIDC, methodGitHub, methodProxy:
		return int(maxProvidedAge / (24 * time.Hour))
	}
	return int(MaxTokenAge / (24 * time.Hour))
}

// owner returns who makes a token.
func (s *Service) owner(r *http.Request, g Grant) identity {
	i := identity{Method: g.Method, User: cmp.Or(g.User, "anybody")}
	switch g.Method {
	case methodProxy:
		if proxied, err := s.proxied(r); err == nil && proxied != nil {
			i = *proxied
		}
	case methodOIDC, methodGitHub:
		if hash, ok := s.cookieHash(r); ok {
			if found, _ := s.sessions.find(hash, s.now()); found != nil {
				i = *found
			}
		}
	}
	i.Proof = ""
	return i
}

// ServeRevokeToken revokes a token of the user, or of anybody for those who may manage them.
func (s *Service) ServeRevokeToken(w http.ResponseWriter, r *http.Request, p Pages) {
	id := r.PostFormValue("id")
	visible := s.visibleTokens(r)
	n := slices.IndexFunc(visible, func(t history.Token) bool { return strconv.FormatInt(t.ID, 10) == id })
	if n < 0 || FromContext(r.Context()).Method == methodToken {
		s.showTokens(w, r, p, http.StatusNotFound, TokensPage{Message: "There is no such token of yours."})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if err := s.tokens.revoke(ctx, visible[n]); err != nil {
		s.log.ErrorContext(ctx, "token cannot be removed", "error", err)
		s.showTokens(w, r, p, http.StatusServiceUnavailable, TokensPage{Message: "The token could not be revoked. Try again, and see the log."})
		return
	}
	s.record(r, history.AuditRecord{Kind: history.AuditToken, Action: "revoke token", Target: visible[n].Name},
		map[string]any{"id": visible[n].ID, "owner": TokenOwner(visible[n])})
	http.Redirect(w, r, s.o.Prefix+"/tokens", http.StatusSeeOther)
}

// sentence begins a text with a capital and ends it with a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
