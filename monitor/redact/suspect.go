package redact

import (
	"encoding/json"
	"math"
	"strings"
)

// suspectWords are in names whose values may be secret. They are masked if they look like it.
const suspectWords = `PRIVATE|SALT|SEED|COOKIE|SESSION|BEARER|JWT|CERT|ENCRYPT|CIPHER|HMAC|SIGN|WEBHOOK|LICEN|ACCESS|SAS|PIN|OTP|VAULT|AWS|HASH|HEX`

// mayNameSecret reports whether name may be that of a secret.
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
func (m settings) suspect(v any) any {
	switch v := v.(type) {
	case string:
		if random(v) {
			return mask
		}
	case json.Number:
		if len(v) >= minRandom {
			return mask
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
