package web_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// longCluster is the longest name of a cluster.
const longCluster = "warehouse-reconciliation_production-west"

// newClusters serves three clusters below /ops, the last of which has a history that cannot be opened. The first changes.
func newClusters(t *testing.T) (address string, first *changingBackend) {
	t.Helper()
	names := []string{"shop", longCluster, "staging"}
	first = newChangingBackend(t, state.Options{MaxTasks: maxTasks})
	list := []web.Cluster{{Name: "staging", Handler: func() (*web.Handler, string) { return nil, "Its history cannot be used: disk I/O error." }}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i, b := range []web.Backend{newBackend(t, state.Options{}), first} {
		name := names[1-i]
		m, prefix, err := web.NewMember(name, names, "/ops")
		if err != nil {
			t.Fatal(err)
		}
		h, err := web.New(web.Options{Backend: b, Prefix: prefix, Member: m, Title: "production"})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = h.Run(ctx) })
		list = append([]web.Cluster{{Name: name, Handler: func() (*web.Handler, string) { return h, "" }}}, list...)
	}
	all, err := web.NewClusters(web.ClustersOptions{Clusters: list, Prefix: "/ops", Title: "production"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(all)
	wg.Go(func() { _ = all.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		server.Close()
		wg.Wait()
	})
	return server.URL + "/ops", first
}

// clusterPages are those of several clusters.
func clusterPages(t *testing.T) visited {
	t.Helper()
	base, _ := newClusters(t)
	return visited{base: base, paths: []string{"/", "/nothing", "/clusters/staging/", "/clusters/" + longCluster + "/", "/clusters/shop/tasks"}}
}

// TestBrowserClusters follows a tile of the overview, changes the cluster with the keyboard, and goes back.
func TestBrowserClusters(t *testing.T) {
	t.Parallel()
	base, backend := newClusters(t)
	address, _, _ := strings.Cut(strings.TrimPrefix(base, "http://"), "/")
	tb := newTab(t, testbrowser.Open(t), &server{address: address, prefix: "/ops"}, "/")
	const workers = `[...document.querySelectorAll("#clusters article:first-child dd")].map((e) => e.textContent)[2]`
	tb.until(live + ` && ` + workers + ` === "2"`)
	backend.Apply(&state.Event{
		Kind: state.WorkerHeartbeat, Hostname: "celery@c", PID: 9, Clock: 1, Micros: noon, ReceivedMicros: noon, Freq: 2,
		Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
	})
	tb.until(workers + ` === "3"`)
	tb.eval(`void document.querySelector("#clusters h2 a").click()`)
	tb.until(`location.pathname === "/ops/clusters/shop/" && ` + live)
	tb.eval(`void location.assign("/ops/clusters/shop/tasks?q=state%3Afailure")`)
	tb.until(`location.search !== "" && ` + live)
	tb.eval(`void document.querySelector(".cluster-menu summary").focus()`)
	tb.press("\r")
	tb.until(`document.querySelector(".cluster-menu").open`)
	tb.until(`document.querySelector(".cluster-menu [aria-current]").textContent === "shop"`)
	tb.press("\t")
	tb.press("\t")
	tb.until(`document.activeElement.textContent === "` + longCluster + `"`)
	tb.press("\r")
	tb.until(`location.pathname === "/ops/clusters/` + longCluster + `/tasks" && location.search === "?q=state%3Afailure" && ` + live)
	tb.eval(`void document.querySelector(".cluster-menu").setAttribute("open", "")`)
	tb.eval(`void document.querySelector(".cluster-menu nav > p a").click()`)
	tb.until(`location.pathname === "/ops/" && ` + live)
}
