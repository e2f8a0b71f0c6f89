package flower_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndFlowersAccess asks Flower and Umbel the same where not everybody may do everything.
func TestEndToEndFlowersAccess(t *testing.T) {
	t.Parallel()
	testenv.Flower(t)
	s := newShop(t, ownRedis(t), "")
	for mode := range modes {
		s.pair(t, mode)
	}
	s.publish(t)
	s.settle(t)
	lists := map[string][]call{"locked": lockedCalls(), "basic": basicCalls(), "readonly": readOnlyCalls(), "": optionsCalls()}
	for mode, list := range lists {
		for _, c := range list {
			c.mode = mode
			t.Run(mode+" "+c.name, func(t *testing.T) {
				t.Parallel()
				s.compare(t, c)
			})
		}
	}
}

// openPaths are those that read, and are open to everybody only while the API is.
func openPaths() []string {
	return []string{
		"/api/workers", "/api/tasks", "/api/task/types", "/api/task/info/success", "/api/task/result/success", "/api/queues/length",
	}
}

// lockedCalls are requests without authentication while the API is closed.
func lockedCalls() []call {
	list := []call{
		{name: "healthcheck", path: "/healthcheck"},
		{name: "workers in JSON", path: "/workers?json=true"},
		{name: "datatable", path: table(0, "name", "asc", "")},
		{name: "options of the datatable", method: http.MethodOptions, path: "/tasks/datatable"},
		{name: "with credentials", path: "/api/tasks", header: signedIn(user)},
	}
	for _, path := range openPaths() {
		list = append(list, call{name: path, path: path}, call{name: "options of " + path, method: http.MethodOptions, path: path})
	}
	for _, path := range actingPaths() {
		list = append(list,
			call{name: path, method: http.MethodPost, path: path},
			call{name: "options of " + path, method: http.MethodOptions, path: path},
		)
	}
	return list
}

// basicCalls are requests with and without credentials where there are users.
func basicCalls() []call {
	const signIn, wrong = "401 Sign in first.", "401 The user name or the password is wrong."
	unknown := call{name: "unknown worker", method: http.MethodPost, path: "/api/worker/pool/grow/nobody@nowhere"}
	list := []call{
		{name: "healthcheck", path: "/healthcheck"},
		{name: "metrics without credentials", path: "/metrics", differs: "metrics", umbel: signIn},
		{name: "another password", path: "/api/tasks", header: signedIn("ann:s3cret"), differs: "401", umbel: wrong},
		{name: "another user", path: "/api/tasks", header: signedIn("bob:s3cret:word"), differs: "401", umbel: wrong},
		{name: "no user", path: "/api/tasks", header: signedIn(":"), differs: "401", umbel: wrong},
		{name: "no credentials in the header", path: "/api/tasks", header: map[string]string{"Authorization": "Basic"}, differs: "401", umbel: "401 "},
		{name: "a token nobody has", path: "/api/tasks", header: map[string]string{"Authorization": "Bearer x"}, differs: "401", umbel: "401 "},
		{name: "workers in JSON without credentials", path: "/workers?json=1", differs: "401", umbel: signIn},
		{name: "workers in JSON with another password", path: "/workers?json=1", header: signedIn("ann:no"), differs: "401", umbel: wrong},
		{name: "page without credentials", path: "/tasks", differs: "sign in", umbel: "303"},
		{name: "datatable without credentials", path: table(0, "name", "asc", ""), differs: "401", umbel: signIn},
		{name: "options without credentials", method: http.MethodOptions, path: "/api/tasks"},
		{name: "options with another password", method: http.MethodOptions, path: "/api/tasks", header: signedIn("ann:no")},
		{name: "options of a command", method: http.MethodOptions, path: "/api/worker/shutdown/{worker}"},
	}
	for _, path := range openPaths() {
		list = append(list, call{name: "without credentials " + path, path: path, differs: "401", umbel: signIn})
	}
	for _, path := range append(actingPaths(), unknown.path) {
		list = append(list, call{name: "without credentials " + path, method: http.MethodPost, path: path, differs: "401", umbel: signIn})
	}
	accepted := []call{
		{name: "tasks", path: "/api/tasks"},
		{name: "types", path: "/api/task/types"},
		{name: "queues", path: "/api/queues/length"},
		{name: "unknown task", path: "/api/task/info/nope"},
		{name: "workers in JSON", path: "/workers?json=1"},
		{name: "datatable", path: table(0, "name", "asc", "")},
		{name: "result", path: "/api/task/result/success"},
		{name: "revoke", method: http.MethodPost, path: "/api/task/revoke/no-such-task"},
		unknown,
	}
	for _, c := range accepted {
		c.name, c.header = "signed in: "+c.name, signedIn(user)
		list = append(list, c)
	}
	for name, header := range map[string]map[string]string{
		"another site": {"Sec-Fetch-Site": "cross-site"}, "another origin": {"Origin": "https://attacker.example"},
	} {
		maps.Copy(header, signedIn(user))
		list = append(list, call{
			name: "from " + name, method: http.MethodPost, path: "/api/task/revoke/x", header: header, differs: "cross-site",
			umbel: `403 {"`,
		})
	}
	return list
}

// readOnlyCalls are requests of which those are refused that would change something, whatever else is wrong with them.
func readOnlyCalls() []call {
	list := []call{
		{name: "result", path: "/api/task/result/success"},
		{name: "result of an unknown task", path: "/api/task/result/nothing"},
		{name: "tasks", path: "/api/tasks?limit=3"},
		{name: "types", path: "/api/task/types"},
		{name: "workers", path: "/api/workers?refresh=1"},
		{name: "workers in JSON", path: "/workers?json=1"},
		{name: "queues", path: "/api/queues/length"},
		{name: "datatable by a form", method: http.MethodPost, path: "/tasks/datatable", form: "draw=1&start=0&length=2&order[0][column]=0"},
		{name: "no JSON", method: http.MethodPost, path: "/api/task/apply/shop.add", json: `{"args"`},
		{name: "options", method: http.MethodOptions, path: "/api/task/apply/shop.add"},
	}
	paths := append(actingPaths(), "/api/worker/pool/grow/nobody@nowhere?n=x", "/api/task/timeout/shop.nothing", "/api/task/apply/shop.nothing",
		"/api/task/revoke/x?terminate=perhaps")
	for _, path := range paths {
		list = append(list, call{name: path, method: http.MethodPost, path: path})
	}
	return list
}

// optionsCalls ask which requests of other origins are allowed while the API is open.
func optionsCalls() []call {
	var list []call
	for _, path := range append(append(openPaths(), actingPaths()...), "/tasks/datatable", "/healthcheck", "/api/worker/pool/grow/nobody") {
		list = append(list, call{name: "options of " + path, method: http.MethodOptions, path: path})
	}
	return append(list,
		call{name: "options of a page", method: http.MethodOptions, path: "/tasks", differs: "options of pages", umbel: "405"},
		call{name: "options of nothing", method: http.MethodOptions, path: "/api/nothing", differs: "options of pages", umbel: "404"},
	)
}
