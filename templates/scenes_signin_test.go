package templates_test

import "github.com/umbelhq/umbel/templates"

func signInScenes() map[string]scene {
	bare := templates.Layout{Title: "Sign in", Path: "/ops/login", Bare: true}
	tokens := layout(templates.SectionSettings, "")
	tokens.User = templates.User{Name: "ann@example.com", Role: "admin", Payload: true, SignOut: true, Tokens: true}
	limited := layout(templates.SectionSettings, "")
	limited.User = templates.User{Name: evil, Role: "viewer", Tokens: true}
	return map[string]scene{
		"sign-in": {bare, templates.SignIn{Password: true, Next: "/ops/tasks?q=x"}},
		"sign-in-failed": {dark(bare), templates.SignIn{
			Password: true, Next: "/ops/", User: evil, Message: "The user name or the password is wrong.",
			Providers: []templates.Link{{Text: "Google", Href: "/ops/login/google?next=%2Fops%2F"}, {Text: evil, Href: "/ops/login/oidc?next=%2Fops%2F"}},
		}},
		"tokens": {tokens, templates.Tokens{
			Everyone: true, CanMake: true, Roles: []string{"viewer", "operator", "admin"}, Payload: true, SignOut: true, Secret: "umbel_abc", Days: "90",
			Tokens: []templates.APIToken{
				{ID: "2", Name: "grafana", Role: "viewer", CreatedAt: at(-3600 * second), ExpiresAt: at(3600 * second)},
				{ID: "1", Name: evil, Owner: evil, Role: "admin", Payload: true, Expired: true, CreatedAt: at(-3600 * second), ExpiresAt: at(-60 * second), UsedAt: at(-61 * second)},
			},
		}},
		"tokens-none": {limited, templates.Tokens{CanMake: true, Roles: []string{"viewer"}, Days: evil, Name: evil, Message: evil}},
	}
}
