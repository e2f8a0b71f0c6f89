package templates

import (
	"time"

	"github.com/a-h/templ"
)

// User is who looks at a page, in its header. Without a name there is nobody to show.
type User struct {
	Name    string
	Role    string
	Payload bool // arguments and results may be seen
	SignOut bool // there is a session to end
	Tokens  bool // there is a page of API tokens
}

// SignIn is the content of the page on which users sign in.
type SignIn struct {
	Password  bool   // there are users with passwords
	Providers []Link // to sign in with
	Next      string // path and query to come back to
	User      string // as it was entered
	Message   string // why it failed, empty if nothing has
}

// Page draws the whole page.
func (v SignIn) Page(l Layout) templ.Component { return signIn(l, v) }

// Tokens is the content of the page of API tokens.
type Tokens struct {
	Tokens   []APIToken // newest first
	Everyone bool       // they are those of all users
	CanMake  bool       // the user may make some
	Roles    []string   // that a new one may have
	Payload  bool       // a new one may see arguments and results
	SignOut  bool       // the user has sessions to end
	Secret   string     // of the one just made, shown once
	Message  string     // why a form failed
	Name     string     // as it was entered
	Days     string     // as it was entered
}

// APIToken is a token without its secret.
type APIToken struct {
	ID                           string
	Name, Owner, Role            string // the owner is empty for those of the command line
	Payload, Expired             bool
	CreatedAt, ExpiresAt, UsedAt time.Time
}

// Page draws the whole page.
func (v Tokens) Page(l Layout) templ.Component { return tokens(l, v) }

func (t APIToken) owner() string {
	if t.Owner == "" {
		return "command line"
	}
	return t.Owner
}
