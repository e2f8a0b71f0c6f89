package redact

import (
	"regexp"
	"strings"
)

// Defaults returns the rules that hold unless they are turned off. Secrets that are known by their form, such as private keys,
// JSON Web Tokens, tokens of providers and passwords in URLs, come with them.
func Defaults() []string {
	return []string{
		"key *password*", "key *passwd*", "key *passphrase*", "key *pwd", "key pass", "key *secret*", "key *token", "key *api_key*",
		"key *access_key*", "key account_key", "key *private_key*", "key *signing_key*", "key *encryption_key*", "key *authorization", "key *cookie*",
		"key *credential*", "key session_id", "key session_key", "key jwt", "key bearer", "key cvv", "key cvc", "key card_number",
		"key dsn", "key connection_string",
	}
}

// token is a form of secrets that is recognizable by itself, whatever its key is.
type token struct {
	sign string // is part of each
	form *regexp.Regexp
	text bool // also looked for in texts of tasks, else only in settings of workers
	word bool // sign begins it and a word
}

// fragment is what a text with such a token contains.
func (t *token) fragment() fragment {
	f := exactFragment(t.sign)
	f.word = t.word
	return f
}

func newTokens() []token {
	var list []token
	for _, form := range tokenForms() {
		list = append(list, token{
			form[0], regexp.MustCompile(form[1]), len(form[0]) >= minFragment, strings.HasPrefix(form[1], `\b`+regexp.QuoteMeta(form[0])),
		})
	}
	return list
}

// tokenForms are pairs of a text that all tokens of a form contain and the pattern of the form.
func tokenForms() [][2]string {
	return [][2]string{
		{"-----BEGIN", `-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|PGP MESSAGE)[^-]*-----(?:(?s:.*?)-----END [A-Z0-9 ]+-----|(?s:.*))`},
		{"eyJ", `\beyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?`}, // JSON Web Token
		{"_live_", `\b[a-z]{2,5}_live_\w{8,}`},               // Stripe and those who do likewise
		{"_test_", `\b[srp]k_test_\w{8,}`},
		{"whsec_", `\bwhsec_[\w+/=]{8,}`},
		{"sk-", `\bsk-[\w-]{20,}`}, // OpenAI, Anthropic
		{"ghp_", `\bghp_\w{20,}`},
		{"gho_", `\bgho_\w{20,}`},
		{"ghu_", `\bghu_\w{20,}`},
		{"ghs_", `\bghs_\w{20,}`},
		{"ghr_", `\bghr_\w{20,}`},
		{"github_pat_", `\bgithub_pat_\w{20,}`},
		{"glpat-", `\bglpat-[\w-]{16,}`},
		{"xox", `\bxox[a-z](?:-[\w]+){2,}`},
		{"xapp-", `\bxapp-[\w-]{16,}`},
		{"hooks.slack.com/", `hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]+`},
		{"/api/webhooks/", `/api/webhooks/\d+/[\w-]+`}, // Discord
		{"AKIA", `\bAKIA[A-Z0-9]{16}\b`},
		{"ASIA", `\bASIA[A-Z0-9]{16}\b`},
		{"ABIA", `\bABIA[A-Z0-9]{16}\b`},
		{"ACCA", `\bACCA[A-Z0-9]{16}\b`},
		{"AIza", `\bAIza[\w-]{30,}`},
		{"ya29.", `\bya29\.[\w-]{16,}`},
		{"GOCSPX-", `\bGOCSPX-[\w-]{16,}`},
		{"SG.", `\bSG\.[\w-]{12,}\.[\w-]{12,}`},
		{"npm_", `\bnpm_\w{20,}`},
		{"pypi-", `\bpypi-[\w-]{20,}`},
		{"dckr_", `\bdckr_[a-z]+_[\w-]{16,}`},
		{"hvs.", `\bhvs\.[\w-]{16,}`},
		{"hvb.", `\bhvb\.[\w-]{16,}`},
		{"hvr.", `\bhvr\.[\w-]{16,}`},
		{"hf_", `\bhf_\w{20,}`},
		{"_v1_", `\bdo[opr]_v1_[0-9a-f]{16,}`},
		{"shp", `\bshp[a-z]{2}_[0-9a-fA-F]{16,}`},
		{"xkeysib-", `\bxkeysib-[\w-]{16,}`},
		{"key-", `\bkey-[0-9a-f]{32}\b`}, // Mailgun
		{"SK", `\bSK[0-9a-f]{32}\b`},     // Twilio
		{":AA", `\b\d{8,10}:AA[\w-]{30,}`},
		{"AGE-SECRET-KEY-", `AGE-SECRET-KEY-1\w+`},
		{"LS0tLS1CRUdJTi", `LS0tLS1CRUdJTi[\w+/=]+`}, // the same as base64
		{"sig=", `\bsig=[\w%+/=-]{16,}`},             // Azure
		{"Bearer ", `\bBearer [\w.~+/=-]{8,}`},
		{"Basic ", `\bBasic [A-Za-z0-9+/]{8,}={0,2}`},
	}
}
