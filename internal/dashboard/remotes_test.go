package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/web"
)

func TestClustersOfOtherUmbels(t *testing.T) {
	t.Parallel()
	far := newSeveral(t, dashboard.Options{SignIn: signedIn()})
	token := far.token()
	encrypted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(encrypted.Close)
	s := newSeveral(t, dashboard.Options{SignIn: signedIn(), Remotes: []*web.Remote{
		{Name: "far", URL: far.url + "/clusters/shop", Token: token},
		{Name: "denied", URL: far.url + "/clusters/shop", Token: "umbel_wrong"},
		{Name: "away", URL: "http://127.0.0.1:1"},
		{Name: "nonsense", URL: answering(t, "application/json", `{"level":"<b>"}`)},
		{Name: "page", URL: answering(t, "text/html", "<html>")},
		{Name: "certificate", URL: encrypted.URL},
	}})
	listed := func() map[string]map[string]any { return s.listed("ann") }
	s.until("read", func() bool { return listed()["far"]["available"] == true && listed()["far"]["connected"] == true })
	if c := listed()["far"]; c["backlog"] == nil {
		t.Errorf("far is %v, without the backlog that its Umbel tells", c)
	}
	if c := listed()["far"]; c["remote"] != true || c["seen_at"] == nil || c["path"] != far.url+"/clusters/shop/" {
		t.Errorf("far is %v", c)
	}
	for name, want := range map[string]string{
		"denied": "401", "away": "no response from Umbel", "nonsense": "not those of Umbel", "page": "there is no JSON API of Umbel", "certificate": "certificate",
	} {
		s.until(name, func() bool { why, _ := listed()[name]["error"].(string); return strings.Contains(why, want) })
	}
	for _, name := range []string{"shop", "billing"} {
		if listed()[name]["available"] != true || listed()[name]["remote"] != false {
			t.Errorf("%s is %v", name, listed()[name])
		}
	}
	if status, page := s.send(http.MethodGet, "/clusters/far/tasks", "ann", ""); status != http.StatusNotFound || !strings.Contains(page, far.url+"/clusters/shop/") {
		t.Errorf("a page of far: %d", status)
	}
	for path, as := range map[string]string{"/": "bob", "/api/v1/clusters": "bob", "/clusters/far/": "bob"} {
		if _, body := s.send(http.MethodGet, path, as, ""); strings.Contains(body, far.url) {
			t.Errorf("%s tells %s of far", path, as)
		}
	}
}

// answering returns the URL of a server that answers everything alike.
func answering(t *testing.T, kind, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestOtherUmbelsHoldNothingUp has other Umbels never answer, answer with nonsense, and with more than is read.
func TestOtherUmbelsHoldNothingUp(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(over) })
	s := newSeveral(t, dashboard.Options{Remotes: []*web.Remote{
		{Name: "silent", URL: silent.URL},
		{Name: "nonsense", URL: answering(t, "application/json", "{]")},
		{Name: "long", URL: answering(t, "application/json", `{"level":"`+strings.Repeat("flowing", 1<<20/7)+`"}`)},
		{Name: "longer", URL: answering(t, "application/json", `["`+strings.Repeat("x", 17<<20)+`"]`)},
	}})
	expectLocal := func() { // while the silent one is waited for, and after
		t.Helper()
		s.until("connected", func() bool {
			return s.listed("")["shop"]["connected"] == true && s.listed("")["billing"]["connected"] == true
		})
		if status, page := s.send(http.MethodGet, "/", "", ""); status != http.StatusOK || !strings.Contains(page, "/clusters/shop/") {
			t.Errorf("the overview answers %d", status)
		}
	}
	s.receive("shop", "shop-1", "pay", 1)
	expectLocal()
	if why, _ := s.listed("")["silent"]["error"].(string); !strings.Contains(why, "has not answered yet") && !strings.Contains(why, "does not answer within") {
		t.Errorf("silent: %s", why)
	}
	for name, want := range map[string]string{
		"silent": "does not answer within 5s", "nonsense": "not those of Umbel", "long": "not those of Umbel", "longer": "larger than 16 MiB",
	} {
		s.until(name, func() bool { why, _ := s.listed("")[name]["error"].(string); return strings.Contains(why, want) })
	}
	expectLocal()
	var problems []string
	s.until("found", func() bool {
		var ids string
		ids, problems = s.found("", "")
		return ids == "shop-1"
	})
	if len(problems) != 4 {
		t.Errorf("of four clusters that cannot be read, a search says %q", problems)
	}
}

func TestSearchOfOtherUmbels(t *testing.T) {
	t.Parallel()
	far := newSeveral(t, dashboard.Options{SignIn: signedIn()})
	slow := newSeveral(t, dashboard.Options{})
	over := make(chan struct{})
	target, err := url.Parse(slow.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	hesitant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // answers all but searches
		if strings.HasSuffix(r.URL.Path, "/tasks") {
			<-over
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(hesitant.Close)
	t.Cleanup(func() { close(over) })
	s := newSeveral(t, dashboard.Options{SignIn: signedIn(), Remotes: []*web.Remote{
		{Name: "far", URL: far.url + "/clusters/shop", Token: far.token()}, {Name: "slow", URL: hesitant.URL + "/clusters/shop"},
	}})
	far.receive("shop", "far-1", "pay", 1)
	far.receive("shop", "far-3", "mail", 3)
	s.receive("shop", "shop-2", "pay", 2)
	s.until("read", func() bool {
		return s.listed("ann")["far"]["available"] == true && s.listed("ann")["slow"]["available"] == true
	})
	find := func(q, want string, missing ...string) {
		t.Helper()
		var problems []string
		s.until("found: "+q, func() bool {
			var ids string
			ids, problems = s.found("ann", q)
			return ids == want
		})
		if diff := cmp.Diff(missing, problems, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: what is missing (-want +got):\n%s", q, diff)
		}
	}
	const late = "The tasks of slow are not here: its Umbel does not answer within 2s."
	find("", "far-3 shop-2 far-1", late)
	find("name:pay -cluster:slow", "shop-2 far-1")
	find("cluster:far", "far-3 far-1")
	find("cluster:shop", "shop-2")
	find("(cluster:far name:mail) OR cluster:shop", "far-3 shop-2")
	find("args:*secret* -cluster:slow", "shop-2", "The tasks of far are not here: arguments, results and exceptions are searched there only.")
	if _, page := s.send(http.MethodGet, "/tasks", "ann", ""); !strings.Contains(page, `href="`+far.url+`/clusters/shop/tasks/far-3"`) || !strings.Contains(page, late) {
		t.Errorf("the page has no link to the task at its Umbel, or does not say what is missing: %.3000s", page)
	}
	if _, body := s.send(http.MethodGet, "/api/v1/tasks?q=cluster:far", "ann", ""); strings.Contains(body, "secret") {
		t.Errorf("arguments are passed on: %s", body)
	}
	if ids, _ := s.found("bob", "cluster:far"); !strings.Contains(ids, "There is no cluster far, or you may not see it.") {
		t.Errorf("bob finds %s", ids)
	}
}
