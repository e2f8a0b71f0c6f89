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

// In returns what the query asks of one of several clusters: without its terms on Cluster, which hold there or do not.
func (q Query) In(cluster string) Query {
	if !q.Mentions(Cluster) {
		return q
	}
	return New(replace(q.Expr(), func(t Term) Expr {
		switch {
		case t.Field != Cluster:
			return t
		case slices.ContainsFunc(t.Values, func(v Value) bool { return strings.EqualFold(v.Text, cluster) }):
			return And{}
		default:
			return Equal(ID, "") // matches no task
		}
	}))
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
