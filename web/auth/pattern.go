package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// pattern is a name or e-mail address with at most one *. It stands for a whole name, never for a part of one.
type pattern struct {
	text   string // folded
	before string // the star
	after  string
	star   bool
}

// maxPatterns bounds each list of patterns.
const maxPatterns = 10_000

// parsePattern reads a pattern as lists of users hold it. The star stands for one or more characters that can be in the part of an
// address before @, so *@example.com is everybody there and nobody elsewhere.
func parsePattern(text string) (pattern, error) {
	text = strings.TrimSpace(text)
	p := pattern{text: fold(text)}
	var extra string
	p.before, p.after, p.star = strings.Cut(p.text, "*")
	if p.star {
		_, extra, _ = strings.Cut(p.after, "*")
	}
	name, domain, mail := strings.Cut(p.text, "@")
	switch {
	case text == "":
		return p, errors.New("a pattern is empty")
	case p.star && (extra != "" || strings.Contains(p.after, "*")):
		return p, fmt.Errorf("the pattern %q has more than one *", text)
	case strings.Trim(text, "*@.") == "":
		return p, fmt.Errorf("the pattern %q stands for everybody: set the default role instead", text)
	case mail && (name == "" || domain == "" || strings.ContainsAny(domain, "@*")):
		return p, fmt.Errorf("the pattern %q is not an address such as ann@example.com or *@example.com", text)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return p, fmt.Errorf("the pattern %q has a space or control character", text)
	}
	return p, nil
}

// match reports whether the pattern stands for name.
func (p pattern) match(name string) bool {
	name = fold(name)
	if !p.star {
		return name != "" && name == p.text
	}
	rest, ok := strings.CutPrefix(name, p.before)
	if !ok {
		return false
	}
	rest, ok = strings.CutSuffix(rest, p.after)
	return ok && rest != "" && !strings.ContainsFunc(rest, notInLocalPart)
}

// notInLocalPart reports whether r cannot be in the part of an address before @, unless quoted.
func notInLocalPart(r rune) bool {
	in := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+/=?^_`{|}~.-", r)
	return !in
}

// fold returns an address in lower case, and other names as they are. It changes ASCII only: others have letters that become the
// same, such as the sign of Kelvin, and addresses of two users must not.
func fold(name string) string {
	if !strings.Contains(name, "@") && !strings.HasPrefix(name, githubPrefix) {
		return name
	}
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// patterns is a list of them.
type patterns []pattern

func parsePatterns(list []string) (patterns, error) {
	if len(list) > maxPatterns {
		return nil, fmt.Errorf("there are more than %d patterns", maxPatterns)
	}
	all := make(patterns, 0, len(list))
	for _, text := range list {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// match reports whether one of the patterns stands for one of names.
func (ps patterns) match(names []string) bool {
	for _, p := range ps {
		if slices.ContainsFunc(names, p.match) {
			return true
		}
	}
	return false
}

// FlowerPatterns returns the patterns that Flower's option auth stands for: an address, several separated by |, or one with .* for
// what is before the @.
func FlowerPatterns(auth string) ([]string, error) {
	auth = strings.TrimSpace(auth)
	if auth == "" {
		return nil, errors.New("auth is empty")
	}
	wild := strings.Contains(auth, ".*")
	if wild && strings.Contains(auth, "|") {
		return nil, fmt.Errorf("auth %q: .* cannot be combined with |", auth)
	}
	var list []string
	for text := range strings.SplitSeq(auth, "|") {
		plain := strings.TrimSpace(text)
		if wild {
			plain = strings.Replace(plain, ".*", "*", 1)
		}
		if strings.Count(plain, "*") > strings.Count(auth, ".*") || strings.Count(plain, "*") > 1 {
			return nil, fmt.Errorf("auth %q: the only wildcard is one .* before the @, as in .*@example.com", auth)
		}
		if _, err := parsePattern(plain); err != nil {
			return nil, fmt.Errorf("auth %q: %w", auth, err)
		}
		if !strings.Contains(plain, "@") {
			return nil, fmt.Errorf("auth %q: %q is not an e-mail address", auth, plain)
		}
		list = append(list, plain)
	}
	return list, nil
}
