package auth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"
)

// githubAPI returns where the API of a GitHub is: on a host of its own for github.com and ghe.com, else below /api/v3.
func githubAPI(issuer string) string {
	u, err := url.Parse(issuer)
	if err != nil {
		return issuer
	}
	host := strings.ToLower(u.Host)
	if host == "github.com" || strings.HasSuffix(host, ".ghe.com") {
		return u.Scheme + "://api." + host
	}
	return issuer + "/api/v3"
}

// githubIdentity asks GitHub who has signed in.
func (p *provider) githubIdentity(ctx context.Context, token *oauth2.Token) (i identity, err error) {
	api := githubAPI(p.Issuer)
	var user struct {
		Login string `json:"login"`
	}
	if _, err := p.get(ctx, api+"/user", token, &user); err != nil {
		return i, err
	}
	var mails []struct {
		Mail     string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if _, err := p.get(ctx, api+"/user/emails?per_page=100", token, &mails); err != nil {
		return i, err
	}
	i = identity{Method: methodGitHub, Provider: p.Name, User: user.Login}
	for _, m := range mails {
		switch {
		case !m.Verified:
		case m.Primary:
			i.Mails = append([]string{m.Mail}, i.Mails...)
		default:
			i.Mails = append(i.Mails, m.Mail)
		}
	}
	if len(i.Mails) == 0 {
		return i, errors.New("GitHub has verified no e-mail address of " + cut(user.Login, maxName))
	}
	for _, g := range p.Groups {
		in, err := p.githubMember(ctx, api, g, user.Login, token)
		if err != nil {
			return i, err
		}
		if in {
			i.Groups = append(i.Groups, g)
		}
	}
	return i, i.check()
}

// githubMember reports whether a user is an active member of an organisation or team.
func (p *provider) githubMember(ctx context.Context, api, group, login string, token *oauth2.Token) (bool, error) {
	org, team, isTeam := strings.Cut(group, "/")
	address := api + "/user/memberships/orgs/" + url.PathEscape(org)
	if isTeam {
		address = api + "/orgs/" + url.PathEscape(org) + "/teams/" + url.PathEscape(team) + "/memberships/" + url.PathEscape(login)
	}
	var member struct {
		State string `json:"state"`
	}
	_, err := p.get(ctx, address, token, &member)
	if failed, ok := errors.AsType[*statusError](err); ok && (failed.status == http.StatusNotFound || failed.status == http.StatusForbidden) {
		return false, nil // GitHub hides what one is not a member of
	}
	return member.State == "active", err
}
