package main

import (
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/floweroptions"
	"github.com/umbelhq/umbel/web/auth"
)

// signsIn reports whether Flower would ask users to sign in.
func signsIn(s *floweroptions.Settings) bool {
	basic, _ := s.Get("basic_auth")
	provider, _ := s.Get("auth_provider")
	users, _ := basic.Value.([]string)
	return len(users) > 0 || provider.Value != nil && provider.Value != ""
}

// signInOf returns the flags that the options of Flower about signing in stand for. It refuses what would let in more people
// than Flower does.
func signInOf(s *floweroptions.Settings) ([]said, error) {
	var list []said
	add := func(x floweroptions.Setting, flag, value string) {
		list = append(list, said{flag, value, x.Origin, x.Source})
	}
	basic, hasBasic := s.Get("basic_auth")
	if users, _ := basic.Value.([]string); hasBasic && len(users) > 0 {
		add(basic, "basic-auth", commaSeparated(users))
	}
	provider, hasProvider := s.Get("auth_provider")
	pattern, hasPattern := s.Get("auth")
	hasProvider, hasPattern = hasProvider && provider.Value != "", hasPattern && pattern.Value != ""
	switch {
	case hasPattern && !hasProvider:
		return nil, fmt.Errorf("%s has no effect without auth_provider, which says where users sign in", pattern.Origin)
	case !hasProvider:
		return list, nil
	case !hasPattern:
		return nil, fmt.Errorf("%s needs auth, the addresses that may sign in: Flower is open to everybody without it", provider.Origin)
	case len(list) > 0:
		return nil, fmt.Errorf("%s and %s: Flower asks for both, Umbel would accept either: choose one", basic.Origin, provider.Origin)
	}
	class := fmt.Sprint(provider.Value)
	kind, ok := map[string]string{
		"GoogleAuth2LoginHandler": auth.KindGoogle, "GithubLoginHandler": auth.KindGitHub,
		"GitLabLoginHandler": auth.KindGitLab, "OktaLoginHandler": auth.KindOkta,
	}[strings.TrimPrefix(class, "flower.views.auth.")]
	if !ok {
		return nil, fmt.Errorf("%s: %s is Python, which is not executed: flower.views.auth has GoogleAuth2LoginHandler, "+
			"GithubLoginHandler, GitLabLoginHandler and OktaLoginHandler", provider.Origin, class)
	}
	add(provider, "sign-in-with", kind)
	patterns, err := auth.FlowerPatterns(fmt.Sprint(pattern.Value))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern.Origin, err)
	}
	add(pattern, "allow", commaSeparated(patterns))
	for option, flag := range map[string]string{
		"oauth2_key": "client-id", "oauth2_secret": "client-secret", "oauth2_redirect_uri": "redirect-uri",
		"gitlab_min_access_level": "gitlab-min-access-level",
	} {
		if x, ok := s.Get(option); ok {
			add(x, flag, fmt.Sprint(x.Value))
		}
	}
	issuer := map[string]string{auth.KindGitHub: "github_oauth_domain", auth.KindGitLab: "gitlab_oauth_domain", auth.KindOkta: "oauth2_okta_base_url"}[kind]
	if x, ok := s.Get(issuer); ok {
		url := fmt.Sprint(x.Value)
		if !strings.Contains(url, "://") {
			url = "https://" + url
		}
		add(x, "issuer", url)
	}
	if x, ok := s.Get("gitlab_auth_allowed_groups"); ok && kind == auth.KindGitLab {
		groups, _ := x.Value.([]string)
		add(x, "require-group", commaSeparated(groups))
	}
	return list, nil
}

// commaSeparated returns values as a flag takes several of them at once.
func commaSeparated(values []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(values) // a Builder takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
