package auth

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// claims are those of an ID token or of userinfo.
type claims struct {
	Mail       string `json:"email"`
	Verified   any    `json:"email_verified"` // a bool, or a string at some providers
	Authorized string `json:"azp"`
	groups     []string
	hasGroups  bool
}

func (c *claims) verified() bool {
	text, _ := c.Verified.(string)
	is, _ := c.Verified.(bool)
	return is || text == "true"
}

// readClaims decodes claims, with those of the groups.
func readClaims(decode func(any) error, groups string) (c claims, err error) {
	var all map[string]json.RawMessage
	if err := errors.Join(decode(&c), decode(&all)); err != nil {
		return c, err
	}
	raw, ok := all[groups]
	if !ok {
		return c, nil
	}
	c.hasGroups = true
	if json.Unmarshal(raw, &c.groups) != nil {
		var one string
		if err := json.Unmarshal(raw, &one); err != nil {
			return c, fmt.Errorf("the claim %s is neither a text nor a list of texts", groups)
		}
		c.groups = []string{one}
	}
	return c, nil
}

// oidcIdentity checks what an OpenID Connect provider says of a user.
func (p *provider) oidcIdentity(ctx context.Context, token *oauth2.Token, nonce string, now func() time.Time) (i identity, err error) {
	found, err := p.discover(ctx, now())
	if err != nil {
		return i, err
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return i, errors.New("the provider sent no ID token")
	}
	verified, err := found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: now}).Verify(ctx, raw)
	if err != nil {
		return i, err
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1 {
		return i, errors.New("the nonce of the ID token is that of another sign-in")
	}
	if verified.AccessTokenHash != "" {
		if err := verified.VerifyAccessToken(token.AccessToken); err != nil {
			return i, err
		}
	}
	c, err := readClaims(verified.Claims, p.GroupsClaim)
	if err != nil {
		return i, err
	}
	if c.Authorized != "" && c.Authorized != p.ClientID {
		return i, errors.New("the ID token was issued to another client")
	}
	if c.Mail == "" || !c.hasGroups && len(p.Groups) > 0 {
		if c, err = p.userInfo(ctx, found, token, verified.Subject, c); err != nil {
			return i, err
		}
	}
	switch {
	case c.Mail == "":
		return i, errors.New("the provider says no e-mail address")
	case !c.verified():
		return i, fmt.Errorf("the provider has not verified the e-mail address %s", cut(c.Mail, maxName))
	case p.Kind == KindGitLab && len(p.Groups) > 0:
		if c.groups, err = p.gitlabGroups(ctx, token); err != nil {
			return i, err
		}
	}
	i = identity{Method: methodOIDC, Provider: p.Name, User: c.Mail, Mails: []string{c.Mail}, Groups: c.groups}
	return i, i.check()
}

// userInfo adds what the ID token does not hold.
func (p *provider) userInfo(ctx context.Context, found *oidc.Provider, token *oauth2.Token, subject string, c claims) (claims, error) {
	if found.UserInfoEndpoint() == "" {
		return c, nil
	}
	info, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return c, err
	}
	if info.Subject != subject {
		return c, errors.New("the provider answered about another user")
	}
	more, err := readClaims(info.Claims, p.GroupsClaim)
	if err != nil {
		return c, err
	}
	if c.Mail == "" {
		c.Mail, c.Verified = more.Mail, more.Verified
	}
	if !c.hasGroups {
		c.groups, c.hasGroups = more.groups, more.hasGroups
	}
	return c, nil
}

// gitlabGroups returns those of the groups of the options that a user is in at the level that is needed. The claims of GitLab do
// not tell the level.
func (p *provider) gitlabGroups(ctx context.Context, token *oauth2.Token) ([]string, error) {
	var in []string
	for _, g := range p.Groups {
		address := p.Issuer + "/api/v4/groups?per_page=100&search=" + url.QueryEscape(g[strings.LastIndexByte(g, '/')+1:]) +
			"&min_access_level=" + strconv.Itoa(p.MinAccessLevel)
		const maxPages = 10
		page := "1"
		for n := 0; n < maxPages && page != ""; n++ {
			var found []struct {
				Path string `json:"full_path"`
			}
			header, err := p.get(ctx, address+"&page="+url.QueryEscape(page), token, &found)
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				if f.Path == g {
					in = append(in, g)
				}
			}
			page = header.Get("X-Next-Page")
		}
	}
	return in, nil
}

// statusError is an answer other than 200.
type statusError struct {
	status  int
	address string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.address, e.status, http.StatusText(e.status))
}

// get reads JSON from an API of the provider.
func (p *provider) get(ctx context.Context, address string, token *oauth2.Token, into any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	token.SetAuthHeader(r)
	r.Header.Set("Accept", "application/json")
	response, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{response.StatusCode, r.URL.Host + r.URL.Path}
	}
	return response.Header, json.NewDecoder(response.Body).Decode(into)
}
