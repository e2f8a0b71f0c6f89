package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of what is kept of a user.
const (
	maxName   = 256 // bytes of a name, an address or a group
	maxMails  = 20
	maxGroups = 500
)

// identity is who somebody is. What they may do follows from it by the options at the time of each request, so that new options
// take effect at once.
type identity struct {
	Method   string   `json:"method"` // basic, oidc, github or proxy
	Provider string   `json:"provider,omitempty"`
	User     string   `json:"user"`
	Mails    []string `json:"mails,omitempty"` // that the provider has verified
	Groups   []string `json:"groups,omitempty"`
	Proof    string   `json:"proof,omitempty"` // changes with the password
}

func (i *identity) encode() string {
	text, _ := json.Marshal(i)
	return string(text)
}

func decodeIdentity(text string) (i identity, err error) {
	err = json.Unmarshal([]byte(text), &i)
	if err == nil && i.User == "" {
		err = errors.New("an identity without user")
	}
	return i, err
}

// names are what lists of users may call somebody.
func (i *identity) names() []string {
	var names []string
	switch i.Method {
	case methodOIDC:
		names = slices.Clone(i.Mails)
	case methodGitHub:
		names = append(slices.Clone(i.Mails), githubPrefix+i.User)
	default:
		names = []string{i.User}
	}
	for _, g := range i.Groups {
		names = append(names, groupPrefix+g)
	}
	return names
}

// check cuts what is too much and refuses names that cannot be shown.
func (i *identity) check() error {
	if err := checkUser(i.User); err != nil {
		return err
	}
	i.Mails = slices.DeleteFunc(i.Mails, func(s string) bool { return checkUser(s) != nil })
	fits := func(list []string, most int) []string {
		list = slices.DeleteFunc(list, func(s string) bool { return checkName(s) != nil })
		return list[:min(len(list), most)]
	}
	i.Mails, i.Groups = fits(i.Mails, maxMails), fits(i.Groups, maxGroups)
	return nil
}

// checkUser refuses names of users, too, that lists would take for something else.
func checkUser(name string) error {
	for _, prefix := range []string{groupPrefix, githubPrefix, rolePrefix} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("the name of the user begins with %s", prefix)
		}
	}
	return checkName(name)
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of the user is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name of the user is longer than %d bytes", maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return errors.New("the name of the user has control characters")
	}
	return nil
}
