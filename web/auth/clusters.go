package auth

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
)

// clusterRoles are the roles in one of several clusters.
type clusterRoles struct {
	name string
	roles
}

// newClusterRoles returns the roles in each cluster.
func newClusterRoles(o Roles, clusters []string) ([]clusterRoles, error) {
	all := make([]clusterRoles, 0, len(clusters))
	for _, name := range clusters {
		in, err := o.in(name, clusters)
		if err != nil {
			return nil, err
		}
		r, err := newRoles(in)
		if err != nil {
			return nil, err
		}
		all = append(all, clusterRoles{name, r})
	}
	return all, nil
}

// in returns the roles in one of several clusters: what the lists say of all of them, and of that one. What they say of another
// one is as if nobody had that name, so that a list with users of one cluster opens no other.
func (o Roles) in(name string, clusters []string) (Roles, error) {
	for _, list := range []*[]string{&o.Admin, &o.Operator, &o.Viewer, &o.Payload} {
		var kept []string
		for _, text := range *list {
			cluster, rest, ok := strings.Cut(text, ":")
			switch {
			case !ok || cluster+":" == groupPrefix || cluster+":" == githubPrefix || cluster+":" == rolePrefix:
				kept = append(kept, text)
			case !slices.Contains(clusters, cluster):
				return o, fmt.Errorf("%q is of the cluster %s, which there is not", text, cluster)
			case cluster == name:
				kept = append(kept, rest)
			default:
				o.elsewhere = true
			}
		}
		if list == &o.Payload {
			o.limited = len(o.Payload) > 0
		}
		*list = kept
	}
	return o, nil
}

// ReservedCluster reports whether lists of users would take the name of a cluster for something else.
func ReservedCluster(name string) bool {
	return slices.Contains([]string{groupPrefix, githubPrefix, rolePrefix}, name+":")
}

// In returns the service as one of several clusters uses it: with the sessions and tokens of all, and with its own roles. Run is
// that of s alone.
func (s *Service) In(cluster string) *Service {
	in := *s
	in.cluster, in.above = cluster, s
	return &in
}

// Above returns the service that In was called of, by which users sign in for all clusters; else s.
func (s *Service) Above() *Service {
	if s.above != nil {
		return s.above
	}
	return s
}

// entitle sets what somebody with these names may see and do: in the cluster of In, or in any of several.
func (s *Service) entitle(g *Grant, names []string, anybody bool) {
	if len(s.clusters) == 0 {
		g.Audience = s.roles.audience(names, anybody)
		g.everywhere = g.Role
		return
	}
	g.everywhere = Admin
	for i := range s.clusters {
		c := &s.clusters[i]
		s.add(g, c.name, c.audience(names, anybody))
	}
}

// add adds what may be seen and done in a cluster.
func (s *Service) add(g *Grant, cluster string, a Audience) {
	if g.everywhere.Covers(a.Role) {
		g.everywhere = a.Role
	}
	if a.Role == "" {
		return
	}
	g.Clusters = append(g.Clusters, cluster)
	switch s.cluster {
	case cluster:
		g.Audience = a
	case "":
		if a.Role.Covers(g.Role) {
			g.Role = a.Role
		}
		g.Payload = g.Payload || a.Payload
	}
}

// entitleAll sets that everything may be seen and done that an audience may, in all clusters.
func (s *Service) entitleAll(g *Grant, a Audience) {
	g.Audience, g.everywhere = a, a.Role
	for i := range s.clusters {
		g.Clusters = append(g.Clusters, s.clusters[i].name)
	}
}

// entitleToken sets what a token without an owner may see and do.
func (s *Service) entitleToken(g *Grant, t history.Token) error {
	only := TokenClusters(t)
	_, role, ok := strings.Cut(t.Role, ":")
	if !ok {
		s.entitleAll(g, Audience{Role: Role(t.Role), Payload: t.Payload})
		return nil
	}
	g.everywhere = Admin
	for i := range s.clusters {
		var a Audience
		if slices.ContainsFunc(only, func(name string) bool { return strings.EqualFold(name, s.clusters[i].name) }) {
			a = Audience{Role: Role(role), Payload: t.Payload}
		}
		s.add(g, s.clusters[i].name, a)
	}
	switch {
	case len(g.Clusters) == 0:
		return &Error{Status: http.StatusForbidden, Message: "The API token is for clusters that there are not."}
	case g.Role == "":
		return NoCluster(s.cluster)
	}
	return nil
}

// NoCluster returns the error for those who ask for a cluster that there is not, or that they may not see: they learn nothing of
// what exists.
func NoCluster(name string) *Error {
	return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("There is no cluster %s, or you may not see it.", name)}
}
