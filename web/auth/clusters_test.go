package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/web/auth"
)

// inCluster returns what a user may see and do in a cluster, or in any if it is empty.
func inCluster(t *testing.T, roles auth.Roles, cluster, user string, groups ...string) (auth.Grant, error) {
	t.Helper()
	s, err := auth.New(t.Context(), auth.Options{
		Store: newStore(t), Proxy: auth.Proxy{User: "X-User", Groups: "X-Groups"}, Roles: roles, Clusters: []string{"shop", "billing"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cluster != "" {
		s = s.In(cluster)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-User", user)
	r.Header.Set("X-Groups", strings.Join(groups, ","))
	return s.Authenticate(r)
}

func TestRolesOfClusters(t *testing.T) {
	t.Parallel()
	roles := auth.Roles{
		Admin: []string{"ann"}, Operator: []string{"shop:ops", "shop:group:crew", "billing:ann"}, Viewer: []string{"shop:vic", "billing:*@example.com"},
		Default: auth.NoRole, Payload: []string{"shop:role:operator", "ann"},
	}
	tests := []struct {
		user, groups  string
		shop, billing auth.Role
		payload       bool // in shop
	}{
		{user: "ann", shop: auth.Admin, billing: auth.Admin, payload: true},
		{user: "ops", shop: auth.Operator, payload: true},
		{user: "kim", groups: "crew", shop: auth.Operator, payload: true},
		{user: "vic", shop: auth.Viewer},
		{user: "bob@example.com", billing: auth.Viewer},
		{user: "shop:vic"},
		{user: "stranger"},
	}
	for _, test := range tests {
		for cluster, want := range map[string]auth.Role{"shop": test.shop, "billing": test.billing} {
			g, err := inCluster(t, roles, cluster, test.user, test.groups)
			if g.Role != want || (want == "") != (err != nil) {
				t.Errorf("%s in %s is %q, %v, want %q", test.user, cluster, g.Role, err, want)
			}
			if payload := test.payload && cluster == "shop" || test.user == "ann"; g.Payload != payload {
				t.Errorf("%s in %s sees payloads: %v, want %v", test.user, cluster, g.Payload, payload)
			}
		}
		g, _ := inCluster(t, roles, "", test.user, test.groups)
		if seen := slices.Contains(g.Clusters, "shop"); seen != (test.shop != "") {
			t.Errorf("%s sees %v", test.user, g.Clusters)
		}
	}
}

// A list for one cluster must not open another, as it would if that one had no lists at all.
func TestListsOfOneClusterOpenNoOther(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string]auth.Roles{
		"admin":   {Admin: []string{"shop:ann"}},
		"payload": {Viewer: []string{"ann"}, Payload: []string{"shop:ann"}},
	} {
		for _, user := range []string{"ann", "bob"} {
			g, _ := inCluster(t, roles, "billing", user)
			if g.Role != auth.Viewer || name == "payload" && g.Payload {
				t.Errorf("%s: %s in billing is %+v, want a viewer who sees no more than the lists say", name, user, g.Audience)
			}
		}
	}
}

func TestListsNameClustersThatThereAre(t *testing.T) {
	t.Parallel()
	_, err := auth.New(t.Context(), auth.Options{
		Store: newStore(t), Users: []string{"ann:pw"}, Roles: auth.Roles{Viewer: []string{"shpo:ann"}}, Clusters: []string{"shop"},
	})
	if err == nil || !strings.Contains(err.Error(), `"shpo:ann" is of the cluster shpo, which there is not`) {
		t.Errorf("New = %v, want that there is no cluster shpo", err)
	}
}

// A token for some clusters has no role in others, nor where there are none of its.
func TestTokensOfClusters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of, there, cluster string
		role               auth.Role
		clusters           string
		why                string
	}{
		{"", "shop billing", "billing", auth.Operator, "shop billing", ""},
		{"shop", "shop billing", "shop", auth.Operator, "shop", ""},
		{"Shop", "shop billing", "shop", auth.Operator, "shop", ""},
		{"shop", "shop billing", "", auth.Operator, "shop", ""},
		{"shop,billing", "shop billing", "billing", auth.Operator, "shop billing", ""},
		{"shop", "shop billing", "billing", "", "", "There is no cluster billing, or you may not see it."},
		{"gone", "shop billing", "billing", "", "", "The API token is for clusters that there are not."},
		{"shop", "", "", "", "", "The API token is for clusters that there are not."},
	} {
		store := newStore(t)
		token, secret, err := auth.NewToken("ci", auth.Audience{Role: auth.Operator, Clusters: test.of}, time.Hour, time.Now())
		if err == nil {
			_, err = store.CreateToken(t.Context(), token)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := auth.New(t.Context(), auth.Options{Store: store, Users: []string{"ann:pw"}, Clusters: strings.Fields(test.there)})
		if err != nil {
			t.Fatal(err)
		}
		if test.cluster != "" {
			s = s.In(test.cluster)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Authorization", "Bearer "+secret)
		g, err := s.Authenticate(r)
		if why := fmt.Sprint(err); g.Role != test.role || strings.Join(g.Clusters, " ") != test.clusters || err != nil && why != test.why || err == nil && test.why != "" {
			t.Errorf("token of %q in %q of %q: %q in %v, %v, want %q in %s, %s", test.of, test.cluster, test.there, g.Role, g.Clusters, err, test.role, test.clusters, test.why)
		}
	}
}
