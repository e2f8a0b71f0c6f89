package auth

import (
	"errors"
	"fmt"
	"strings"
)

// NoRole as Roles.Default keeps out those whom no list names.
const NoRole Role = "none"

// Roles say what users may do. Each list holds names of users, e-mail addresses, github: and a login, or group: and the name of a
// group, with at most one * before the @. Where there are several clusters, the name of one and a colon may precede each: it is for
// that cluster alone. The highest role that a list gives counts.
type Roles struct {
	Admin, Operator, Viewer []string
	// Default is the role of those whom no list names: NoRole, or if it is empty, Admin where there are no lists, else Viewer.
	// Those who sign in through a provider that anybody can have an account at have none then.
	Default Role
	// Payload lists those who see arguments and results, also as role:operator for a role and those above it. If it is
	// empty, everybody does.
	Payload []string

	// elsewhere says that lists name users of other clusters, and limited that Payload does: nobody has more here than if all of these
	// were lists of this cluster.
	elsewhere, limited bool
}

// groupPrefix and the others come before what is not the name of a user.
const (
	groupPrefix  = "group:"
	githubPrefix = "github:"
	rolePrefix   = "role:"
)

// roles are Roles, ready to be asked.
type roles struct {
	lists    []roleList // highest first
	fallback Role
	explicit bool // whether the options have a default
	payload  patterns
	from     Role // lowest role that sees payloads, empty if none does for its own sake
	all      bool // everybody sees payloads
}

type roleList struct {
	role Role
	patterns
}

func newRoles(o Roles) (roles, error) {
	r := roles{fallback: o.Default, explicit: o.Default != ""}
	listed := o.elsewhere
	for _, l := range []struct {
		role Role
		list []string
	}{{Admin, o.Admin}, {Operator, o.Operator}, {Viewer, o.Viewer}} {
		ps, err := parsePatterns(l.list)
		if err != nil {
			return r, fmt.Errorf("the list of the role %s: %w", l.role, err)
		}
		r.lists = append(r.lists, roleList{l.role, ps})
		listed = listed || len(ps) > 0
	}
	switch o.Default {
	case "":
		r.fallback = Admin
		if listed {
			r.fallback = Viewer
		}
	case NoRole:
		r.fallback = ""
	case Viewer, Operator, Admin:
	default:
		return r, fmt.Errorf("the default role %q is none of none, viewer, operator and admin", o.Default)
	}
	var names []string
	for _, text := range o.Payload {
		role, ok := strings.CutPrefix(text, rolePrefix)
		switch {
		case !ok:
			names = append(names, text)
		case !Role(role).valid():
			return r, fmt.Errorf("%q is none of role:viewer, role:operator and role:admin", text)
		case r.from == "" || r.from.Covers(Role(role)):
			r.from = Role(role)
		}
	}
	r.all = len(o.Payload) == 0 && !o.limited
	var err error
	r.payload, err = parsePatterns(names)
	return r, err
}

// audience returns what those with these names may see and do. anybody says that everybody in the world can have such a name.
func (r *roles) audience(names []string, anybody bool) Audience {
	a := Audience{Role: r.fallback}
	if anybody && !r.explicit {
		a.Role = ""
	}
	for _, l := range r.lists {
		if l.match(names) {
			a.Role = l.role
			break
		}
	}
	if a.Role == "" {
		return Audience{}
	}
	a.Payload = r.all || r.from != "" && a.Role.Covers(r.from) || r.payload.match(names)
	return a
}

func (r Role) valid() bool { return r == Viewer || r == Operator || r == Admin }

// Covers reports whether a role contains all actions of another.
func (r Role) Covers(other Role) bool {
	rank := map[Role]int{Viewer: 1, Operator: 2, Admin: 3}
	return rank[r] >= rank[other]
}

// lower returns the audience that may see and do what both may.
func (a Audience) lower(b Audience) Audience {
	if a.Role.Covers(b.Role) {
		a.Role = b.Role
	}
	a.Payload = a.Payload && b.Payload
	return a
}

// ParseRole returns the role of a name.
func ParseRole(text string) (Role, error) {
	if r := Role(text); r.valid() {
		return r, nil
	}
	return "", errors.New("a role is viewer, operator or admin")
}
