package query

import (
	"fmt"
	"slices"
	"strings"
)

// UnresolvedError says why a query that can be read has no answer.
type UnresolvedError interface {
	error
	// In returns the error with its place in the text of the query.
	In(text string) *Error
}

// OtherClusterError says that a query asks one cluster for the tasks of another.
type OtherClusterError struct {
	Named string
	Here  string // empty if there is one cluster, without a name
}

// Error returns a sentence.
func (e *OtherClusterError) Error() string {
	if e.Here == "" {
		return "there is one cluster here, without a name: leave out cluster:" + e.Named
	}
	return fmt.Sprintf("this is the cluster %s: search all clusters to find tasks of %s", e.Here, e.Named)
}

// In returns the error with its place in the text of the query.
func (e *OtherClusterError) In(text string) *Error {
	return &Error{Offset: max(strings.Index(text, e.Named), 0), Length: len(e.Named), Message: e.Error()}
}

// Clusters returns the clusters that the query names.
func (q Query) Clusters() (names []string) {
	if !q.Mentions(Cluster) {
		return nil
	}
	replace(q.Expr(), func(t Term) Expr {
		for _, v := range t.Values {
			if t.Field == Cluster && !slices.Contains(names, v.Text) {
				names = append(names, v.Text)
			}
		}
		return t
	})
	return names
}

// In returns what the query asks of one of several clusters: without its terms on Cluster, which hold there or do not. One that
// matches no task there is id:"" alone.
func (q Query) In(cluster string) Query {
	if !q.Mentions(Cluster) {
		return q
	}
	e := in(q.Expr(), cluster)
	if never(e) {
		return New(Equal(ID, ""))
	}
	return New(e)
}

// never reports whether e is what in returns for an expression that matches nothing, and always for one that matches everything.
func never(e Expr) bool {
	some, ok := e.(Or)
	return ok && len(some) == 0
}

func always(e Expr) bool {
	all, ok := e.(And)
	return ok && len(all) == 0
}

// in returns e as one of several clusters reads it.
func in(e Expr, cluster string) Expr {
	switch e := e.(type) {
	case And:
		all := And{}
		for _, x := range e {
			if x = in(x, cluster); never(x) {
				return Or{}
			}
			all = append(all, x)
		}
		return simplify(all)
	case Or:
		some := Or{}
		for _, x := range e {
			if x = in(x, cluster); always(x) {
				return And{}
			} else if !never(x) {
				some = append(some, x)
			}
		}
		return some
	case Not:
		switch x := in(e.X, cluster); {
		case never(x):
			return And{}
		case always(x):
			return Or{}
		default:
			return Not{x}
		}
	case Term:
		switch {
		case e.Field != Cluster:
		case slices.ContainsFunc(e.Values, func(v Value) bool { return strings.EqualFold(v.Text, cluster) }):
			return And{}
		default:
			return Or{}
		}
	}
	return e
}

// Within is In for a query to that cluster alone. The error is an *OtherClusterError if it names another.
func (q Query) Within(cluster string) (Query, error) {
	for _, name := range q.Clusters() {
		if !strings.EqualFold(name, cluster) {
			return Query{}, &OtherClusterError{Named: name, Here: cluster}
		}
	}
	return q.In(cluster), nil
}
