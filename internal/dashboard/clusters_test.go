package dashboard_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/web/auth"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestNobodyReachesAClusterWithoutARole(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{SignIn: signedIn(), Prefix: "/ops"})
	token := func(as, cluster, role string) string {
		_, page := s.send(http.MethodPost, "/clusters/"+cluster+"/tokens", as, url.Values{"name": {"t"}, "role": {role}, "days": {"1"}, "payload": {"on"}}.Encode())
		secret := regexp.MustCompile(`umbel_[a-z2-7]{30,}`).FindString(page)
		if secret == "" {
			t.Fatalf("%s got no token: %s", as, page)
		}
		return secret
	}
	roles := map[string]map[string]auth.Role{
		"ann": {"shop": auth.Admin, "billing": auth.Admin}, "cas": {"shop": auth.Operator}, "bob": {"billing": auth.Viewer}, "dan": {},
		token("cas", "shop", "operator"): {"shop": auth.Operator}, token("bob", "billing", "viewer"): {"billing": auth.Viewer},
	}
	requests := []struct {
		method, path, body string
		least              auth.Role
	}{
		{http.MethodGet, "/", "", auth.Viewer},
		{http.MethodGet, "/tasks", "", auth.Viewer},
		{http.MethodGet, "/settings", "", auth.Viewer},
		{http.MethodGet, "/api/v1/tasks", "", auth.Viewer},
		{http.MethodGet, "/api/v1/openapi.json", "", auth.Viewer},
		{http.MethodGet, "/api/tasks", "", auth.Viewer},
		{http.MethodGet, "/metrics", "", auth.Viewer},
		{http.MethodPost, "/mcp", ping, auth.Viewer},
		{http.MethodPost, "/api/v1/marks", `{"text":"v1"}`, auth.Operator},
		{http.MethodPost, "/views", "name=x&q=", auth.Operator},
		{http.MethodGet, "/outbox/audit", "", auth.Admin},
	}
	for user, in := range roles {
		for _, cluster := range []string{"shop", "billing"} {
			role := in[cluster]
			for _, r := range requests {
				status, body := s.send(r.method, "/clusters/"+cluster+r.path, user, r.body)
				switch {
				case role == "" && (status != http.StatusNotFound && user != "dan" || status < 400 || strings.Contains(body, "memory://")):
					t.Errorf("%s without a role in %s: %s %s = %d", user, cluster, r.method, r.path, status)
				case role != "" && role.Covers(r.least) == (status >= 400):
					t.Errorf("%s, %s in %s: %s %s = %d %.200s", user, role, cluster, r.method, r.path, status, body)
				case role != "" && !role.Covers(r.least) && status != http.StatusForbidden:
					t.Errorf("%s, %s in %s: %s %s = %d, want 403", user, role, cluster, r.method, r.path, status)
				}
			}
			if status, _ := s.socket("/clusters/"+cluster+"/ws?topic=%2Ftasks", user); (status == http.StatusSwitchingProtocols) != (role != "") {
				t.Errorf("%s in %s: a socket opens with %d", user, cluster, status)
			}
		}
		for _, path := range []string{"/", "/api/v1/clusters", "/metrics"} {
			status, body := s.send(http.MethodGet, path, user, "")
			for _, cluster := range []string{"shop", "billing"} {
				if seen := strings.Contains(body, cluster); seen != (in[cluster] != "") {
					t.Errorf("%s: %s shows %s: %v (%d)", user, path, cluster, seen, status)
				}
			}
		}
		if len(in) == 0 {
			continue
		}
		_, frame := s.socket("/ws?topic=%2F", user)
		if shop := strings.Contains(frame, "clusters/shop"); frame == "" || shop != (in["shop"] != "") {
			t.Errorf("%s: the overview's socket shows shop: %v", user, shop)
		}
	}
	for _, path := range []string{"/", "/api/v1/clusters", "/metrics", "/clusters/shop/tasks", "/clusters/none/tasks", "/tokens"} {
		if status, body := s.send(http.MethodGet, path, "", ""); status != http.StatusSeeOther && status != http.StatusUnauthorized || strings.Contains(body, "memory://") {
			t.Errorf("nobody: %s = %d", path, status)
		}
	}
}

// Tokens are those of all clusters, so who manages one cluster only does not see or revoke those of others.
func TestAdminsOfOneClusterManageTheirOwnTokens(t *testing.T) {
	t.Parallel()
	o := signedIn()
	o.Roles.Admin = append(o.Roles.Admin, "shop:dan")
	s := newSeveral(t, dashboard.Options{SignIn: o})
	s.send(http.MethodPost, "/tokens", "ann", "name=of-ann&role=admin&days=1")
	for user, want := range map[string]bool{"ann": true, "dan": false} {
		for _, path := range []string{"/tokens", "/clusters/shop/tokens"} {
			if _, page := s.send(http.MethodGet, path, user, ""); strings.Contains(page, "of-ann") != want {
				t.Errorf("%s on %s sees the token of ann: %v, want %v", user, path, !want, want)
			}
		}
	}
	if status, _ := s.send(http.MethodPost, "/clusters/shop/tokens/revoke", "dan", "id=1"); status != http.StatusNotFound {
		t.Errorf("dan revoked the token of ann: %d", status)
	}
}

func TestOneSessionIsForAllClusters(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{SignIn: signedIn(), Prefix: "/ops"})
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	end := func(res *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.Request.URL.RequestURI()
	}
	get := func(path string) string {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		return end(browser.Do(r))
	}
	post := func(path string, form url.Values) string {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return end(browser.Do(r))
	}
	const next = "/ops/clusters/shop/tasks"
	if at := get("/clusters/shop/tasks"); at != "/ops/clusters/shop/login?next="+url.QueryEscape(next) {
		t.Errorf("nobody is led to %s", at)
	}
	if at := post("/clusters/shop/login", url.Values{"user": {"ann"}, "password": {"pw-ann"}, "next": {next}}); at != next {
		t.Errorf("after signing in, at %s", at)
	}
	for _, path := range []string{"/clusters/billing/tasks", "/", "/tokens"} {
		if at := get(path); at != "/ops"+path {
			t.Errorf("%s leads to %s", path, at)
		}
	}
	post("/clusters/billing/logout", nil)
	if at := get("/clusters/shop/"); !strings.Contains(at, "/login") {
		t.Errorf("after signing out, at %s", at)
	}
}

func TestOutageOfABrokerTouchesNoOtherCluster(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{})
	s.until("connected", func() bool {
		l := s.listed("")
		return l["shop"]["connected"] == true && l["billing"]["connected"] == true
	})
	s.brokers["shop"].Refuse(errors.New("down"))
	s.brokers["shop"].Fail(errors.New("down"))
	s.until("lost", func() bool { return s.listed("")["shop"]["connected"] == false })
	if billing := s.listed("")["billing"]; billing["connected"] != true || billing["available"] != true {
		t.Errorf("billing is %v", billing)
	}
}

func TestDamageOfAHistoryTouchesNoOtherCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shop := filepath.Join(dir, dashboard.ClustersDir, "shop")
	if err := os.MkdirAll(filepath.Dir(shop), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shop, nil, 0o600); err != nil { // where its directory should be
		t.Fatal(err)
	}
	s := newSeveral(t, dashboard.Options{DataDir: dir})
	if l := s.listed(""); l["shop"]["available"] != false || l["shop"]["error"] == nil || l["billing"]["available"] != true {
		t.Errorf("clusters: %v, want shop to be unavailable", l)
	}
	for path, want := range map[string]int{"/clusters/shop/tasks": 503, "/clusters/billing/tasks": 200, "/": 200, "/metrics": 200, "/readyz": 200} {
		status, body := s.send(http.MethodGet, path, "", "")
		if status != want || path == "/metrics" && !strings.Contains(body, `umbel_cluster_available{cluster="shop"} 0.0`) {
			t.Errorf("%s = %d, want %d: %.500s", path, status, want, body)
		}
	}
	if err := os.Remove(shop); err != nil {
		t.Fatal(err)
	}
	s.until("available", func() bool { return s.listed("")["shop"]["available"] == true })
	if _, err := os.Stat(filepath.Join(shop, "history.db")); err != nil {
		t.Errorf("shop has no history of its own: %v", err)
	}
}

// TestClustersInPostgreSQL keeps each history in a schema of one database. That of shop is of a later version at first.
func TestClustersInPostgreSQL(t *testing.T) {
	t.Parallel()
	address := testpostgres.Database(t)
	testpostgres.Execute(t, address, `CREATE SCHEMA umbel_shop; CREATE TABLE umbel_shop.goose_db_version
		(id int, version_id bigint, is_applied boolean, tstamp timestamp); INSERT INTO umbel_shop.goose_db_version VALUES (1, 1000, true)`)
	s := newSeveral(t, dashboard.Options{History: address, SignIn: &auth.Options{Users: []string{"ann:pw-ann"}}, OpenMetrics: true})
	_, body := s.send(http.MethodGet, "/api/v1/clusters", "ann", "")
	if !strings.Contains(body, "a newer version") || strings.Count(body, `"available":true`) != 1 {
		t.Errorf("clusters: %s, want shop to be unavailable", body)
	}
	for path, want := range map[string]int{"/clusters/shop/tasks": 503, "/clusters/billing/tasks": 200} {
		if status, _ := s.send(http.MethodGet, path, "ann", ""); status != want {
			t.Errorf("%s = %d, want %d", path, status, want)
		}
	}
	testpostgres.Execute(t, address, "DROP SCHEMA umbel_shop CASCADE")
	s.until("available", func() bool {
		_, body := s.send(http.MethodGet, "/api/v1/clusters", "ann", "")
		return strings.Count(body, `"available":true`) == 2
	})
	for _, name := range []string{"billing", "shop"} {
		if status, body := s.send(http.MethodPost, "/clusters/"+name+"/api/v1/marks", "ann", `{"text":"of `+name+`"}`); status != http.StatusCreated {
			t.Errorf("mark of %s: %d %s", name, status, body)
		}
		db, err := postgres.Open(t.Context(), postgres.Options{URL: address, Schema: dashboard.ClusterSchema(name), ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		marks, err := db.Marks(t.Context(), time.Time{}, time.Now().Add(time.Hour), 9)
		if err != nil || len(marks) != 1 || marks[0].Text != "of "+name {
			t.Errorf("marks of %s: %v, %v", name, marks, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSearchOfAllClusters(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{SignIn: signedIn()})
	s.until("connected", func() bool {
		_, body := s.send(http.MethodGet, "/api/v1/clusters", "ann", "")
		return strings.Count(body, `"connected":true`) == 2
	})
	for i, name := range []string{"shop", "billing", "shop"} {
		s.receive(name, fmt.Sprintf("%s-%d", name, i), "pay", i)
	}
	ids := func(as, q string) string {
		found, _ := s.found(as, q)
		return found
	}
	s.until("received", func() bool { return ids("ann", "") == "shop-2 billing-1 shop-0" })
	for q, want := range map[string]string{
		"cluster:shop": "shop-2 shop-0", "-cluster:SHOP": "billing-1", "cluster:billing OR id:shop-0": "billing-1 shop-0", "cluster:shop,billing name:pay": "shop-2 billing-1 shop-0",
		"name:none": "",
	} {
		if got := ids("ann", q); got != want {
			t.Errorf("%s finds %s, want %s", q, got, want)
		}
	}
	if got := ids("bob", ""); got != "billing-1" {
		t.Errorf("bob finds %s", got)
	}
	for _, name := range []string{"shop", "none"} { // one that there is not, and one that he may not see
		if got := ids("bob", "cluster:"+name); !strings.Contains(got, "There is no cluster "+name+", or you may not see it.") {
			t.Errorf("bob asks for %s: %s", name, got)
		}
		if status, page := s.send(http.MethodGet, "/tasks?q=cluster:"+name, "bob", ""); status != http.StatusBadRequest || !strings.Contains(page, "or you may not see it") {
			t.Errorf("bob asks the page for %s: %d", name, status)
		}
	}
	for path, want := range map[string]string{
		"/api/v1/suggest?q=cluster:s": `"text":"shop"`, "/clusters/shop/api/v1/suggest?q=cluster:": `"text":"shop"`,
		"/clusters/shop/api/v1/tasks?q=cluster:shop": `"id":"shop-2"`, "/clusters/shop/api/v1/tasks?q=cluster:billing": "this is the cluster shop: search all clusters",
		"/clusters/shop/tasks?q=cluster:billing": "his is the cluster shop: search all clusters", "/tasks?q=cluster:shop": `href="/clusters/shop/tasks/shop-2"`,
		"/tasks?q=name:pay": `<a class="chip" href="/clusters/shop/tasks?q=name%3Apay">shop <b>2</b></a>`,
	} {
		if _, body := s.send(http.MethodGet, path, "ann", ""); !strings.Contains(body, want) {
			t.Errorf("%s without %s: %.2000s", path, want, body)
		}
	}
	for _, path := range []string{"/api/v1/suggest?q=cluster:", "/clusters/billing/api/v1/suggest?q=cluster:", "/tasks", "/api/v1/tasks"} {
		if _, body := s.send(http.MethodGet, path, "bob", ""); strings.Contains(body, "shop-") || strings.Contains(body, `"shop"`) {
			t.Errorf("%s tells bob of shop: %s", path, body)
		}
	}
}

func TestClustersBehindAProxyThatStripsThePrefix(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{Prefix: "/ops"})
	s.url = strings.TrimSuffix(s.url, "/ops")
	for path, want := range map[string]string{"/clusters/shop/tasks": `href="/ops/clusters/shop/queues"`, "/": `href="/ops/clusters/shop/"`} {
		if status, body := s.send(http.MethodGet, path, "", ""); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s = %d without %s", path, status, want)
		}
	}
}

func TestSwitcherLeadsToTheSamePage(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, dashboard.Options{Prefix: "/ops"})
	for path, want := range map[string]string{
		"/tasks?q=state%3Afailure": "/tasks?q=state%3Afailure", "/workers": "/workers", "/tasks/x": "/", "/": "/", "/failures?show=all": "/failures?show=all",
	} {
		_, page := s.send(http.MethodGet, "/clusters/shop"+path, "", "")
		if link := `href="/ops/clusters/billing` + want + `"`; !strings.Contains(page, link) {
			t.Errorf("%s has no %s", path, link)
		}
	}
}
