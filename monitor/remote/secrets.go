package remote

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
)

// token is a form of secrets that is recognizable by itself, whatever its name is.
type token struct {
	sign string // is part of each
	form *regexp.Regexp
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
		{"gh", `\bgh[opusr]_\w{20,}`},
		{"github_pat_", `\bgithub_pat_\w{20,}`},
		{"glpat-", `\bglpat-[\w-]{16,}`},
		{"xox", `\bxox[a-z](?:-[\w]+){2,}`},
		{"xapp-", `\bxapp-[\w-]{16,}`},
		{"hooks.slack.com/", `hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]+`},
		{"/api/webhooks/", `/api/webhooks/\d+/[\w-]+`}, // Discord
		{"A", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`},
		{"AIza", `\bAIza[\w-]{30,}`},
		{"ya29.", `\bya29\.[\w-]{16,}`},
		{"GOCSPX-", `\bGOCSPX-[\w-]{16,}`},
		{"SG.", `\bSG\.[\w-]{12,}\.[\w-]{12,}`},
		{"npm_", `\bnpm_\w{20,}`},
		{"pypi-", `\bpypi-[\w-]{20,}`},
		{"dckr_", `\bdckr_[a-z]+_[\w-]{16,}`},
		{"hv", `\bhv[sbr]\.[\w-]{16,}`},
		{"hf_", `\bhf_\w{20,}`},
		{"do", `\bdo[opr]_v1_[0-9a-f]{16,}`},
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

func newTokens() []token {
	var list []token
	for _, form := range tokenForms() {
		list = append(list, token{sign: form[0], form: regexp.MustCompile(form[1])})
	}
	return list
}

// suspectWords are in names whose values may be secret. They are masked if they look like it.
const suspectWords = `PRIVATE|SALT|SEED|COOKIE|SESSION|BEARER|JWT|CERT|ENCRYPT|CIPHER|HMAC|SIGN|WEBHOOK|LICEN|ACCESS|SAS|PIN|OTP|VAULT|AWS|HASH|HEX`

// suspicious reports whether name may be that of a secret.
func mayNameSecret(name string) bool {
	name = strings.ToUpper(name)
	for word := range strings.SplitSeq(suspectWords, "|") {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

const (
	minRandom  = 16  // characters
	minEntropy = 3.0 // bits of each
)

// random reports whether s looks like a key: one long word of letters and digits in no order.
func random(s string) bool {
	if len(s) < minRandom {
		return false
	}
	var counts [128]int
	letters, digits := false, false
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters = true
		case !strings.ContainsRune("+/=_-", c):
			return false
		}
		counts[c]++
	}
	entropy := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			entropy -= p * math.Log2(p)
		}
	}
	return letters && digits && entropy >= minEntropy
}

// suspect masks what looks like a secret in the value of a suspicious name.
func (m masking) suspect(v any) any {
	switch v := v.(type) {
	case string:
		if random(v) {
			return masked
		}
	case json.Number:
		if len(v) >= minRandom {
			return masked
		}
	case []any:
		for i := range v {
			v[i] = m.suspect(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = m.suspect(v[key])
		}
	}
	return v
}

// known masks what is a secret by its form.
func (m masking) maskTokens(s string) string {
	for _, t := range m.tokens {
		if strings.Contains(s, t.sign) {
			s = t.form.ReplaceAllLiteralString(s, masked)
		}
	}
	return s
}
