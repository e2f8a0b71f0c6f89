package flower_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// differences are those between Flower's answers and Umbel's that are meant, with their reasons. docs/flower.md lists them.
var differences = map[string]string{
	"task-id":          "Flower's documents have the key task-id in /api/task/info, its code has not. Umbel answers with uuid and task-id.",
	"blank limit":      "A blank limit is none: Flower answers 400.",
	"dashboard":        "/dashboard?json=1 is what /workers?json=1 is, as before Flower 2.0: Flower answers 404.",
	"HEAD":             "HEAD is answered as GET without a body: Flower answers 405.",
	"trailing slash":   "Slashes at the end of a path lead to the path without them: Flower answers 404.",
	"method":           "Methods that a path does not have are answered with a sentence and Allow: Flower's answer is empty, or the word None.",
	"inspected":        "Workers are inspected when they are first asked about: Flower knows those that were there when it started.",
	"ids":              "A search without a field finds texts inside the ids of the newest tasks only, as many as are read in half a second; at the beginning of ids, and in all other fields, it finds them in all tasks.",
	"parent of itself": "A task that was retried is not its own parent and child.",
	"harm":             "What a worker would take and be harmed by, such as a pool that grows by 0 or less, is refused.",
	"reason":           "Values that every worker would refuse are refused by Umbel, with a reason of its own.",
	"names":            "Names and values reach workers as they were given: Flower escapes them for HTML.",
	"rate of 0":        "A rate limit of 0 lifts the limit: in Flower the worker says that it is set.",
	"JSON":             "Errors of JSON have one sentence of Umbel's.",
	"ten years":        "Times that lie more than ten years ahead are refused.",
	"400":              "Options of a task that cannot be had answer 400: Flower answers 500.",
	"401":              "Without credentials the answer is 401 with a sentence, and WWW-Authenticate with the realm Umbel: Flower sends an empty body without that header below /api/, and elsewhere the realm flower.",
	"sign in":          "Pages lead browsers to /login: Flower answers 401, so that the browser asks.",
	"metrics":          "/metrics needs credentials where there are users, unless --open-metrics: in Flower it is open.",
	"cross-site":       "Requests of other sites that change something are refused without authentication too, with a sentence of Umbel's.",
	"options of pages": "OPTIONS is answered with 204 below /api/ and for /tasks/datatable and /healthcheck, as in Flower, but not for pages and what there is not.",
	"escape":           "Errors show arguments as they were given: Flower escapes them for HTML.",
}

// settled are the tasks of publish.py with the states that they come to.
var settled = map[string]string{
	"success": "SUCCESS", "texts": "SUCCESS", "failure": "FAILURE", "retried": "SUCCESS", "custom": "SUCCESS", "parent": "SUCCESS", "child": "SUCCESS",
	"scheduled": "RECEIVED", "revoked": "RECEIVED", "revoked-early": "REVOKED", "pending": "PENDING", "priority": "PENDING", "unregistered": "PENDING",
}

// settle waits until both show all tasks of publish.py in the states that they come to.
func (s *shop) settle(t *testing.T) {
	t.Helper()
	for mode, p := range s.pairs {
		eventually(t, "RabbitMQ has statistics of the queue", func() error {
			answer, err := ask(t.Context(), p.flower, call{path: "/api/queues/length", header: signedIn(user)})
			if err == nil && s.management != "" && !strings.Contains(answer.body, `"messages": `) {
				err = errors.New(answer.line())
			}
			return err
		})
		for _, url := range []string{p.flower, p.umbel} {
			for id, state := range settled {
				eventually(t, fmt.Sprintf("%s (%s) shows that %s is %s", url, mode, id, state), func() error {
					answer, err := ask(t.Context(), url, call{path: "/tasks/datatable?draw=1&start=0&length=100&order%5B0%5D%5Bcolumn%5D=0", header: signedIn(user)})
					if err == nil && !strings.Contains(answer.body, fmt.Sprintf(`"uuid": %q, "name"`, id)) {
						err = fmt.Errorf("%d %.300s", answer.status, answer.body)
					} else if err == nil {
						_, rest, _ := strings.Cut(answer.body, fmt.Sprintf(`"uuid": %q, "name"`, id))
						if !strings.Contains(rest[:min(len(rest), 60)], fmt.Sprintf(`"state": %q`, state)) {
							err = fmt.Errorf("%.60s", rest)
						}
					}
					return err
				})
			}
		}
	}
}

// readingCalls are the requests that change nothing.
func readingCalls() []call {
	list := []call{
		{name: "healthcheck", path: "/healthcheck"},
		{name: "types", path: "/api/task/types"},
		{name: "info of an unknown task", path: "/api/task/info/nope"},
		{name: "info of a task with a name to escape", path: "/api/task/info/a%2Fb%20%22c"},
		{name: "info of no task", path: "/api/task/info/", differs: "trailing slash", umbel: "308"},
		{name: "info", path: "/api/task/info/success", differs: "task-id", umbel: `200 {"uuid": "success", `},

		{name: "all tasks", path: "/api/tasks"},
		{name: "no tasks", path: "/api/tasks?limit=0"},
		{name: "less than no tasks", path: "/api/tasks?limit=-3"},
		{name: "limit", path: "/api/tasks?limit=2"},
		{name: "last limit counts", path: "/api/tasks?limit=2&limit=1"},
		{name: "limit with spaces", path: "/api/tasks?limit=%20+2%09"},
		{name: "limit in the form of Python", path: "/api/tasks?limit=%2B0_2"},
		{name: "blank limit", path: "/api/tasks?limit=", differs: "blank limit", umbel: `200 {"`},
		{name: "limit that is no number", path: "/api/tasks?limit=x"},
		{name: "limit that is no integer", path: "/api/tasks?limit=2.0"},
		{name: "limit to escape", path: "/api/tasks?limit=%3Cx%3E", differs: "escape", umbel: "400 Invalid argument '<x>' of type 'int'"},
		{name: "offset", path: "/api/tasks?offset=3&limit=4"},
		{name: "offset below zero", path: "/api/tasks?offset=-3&limit=1"},
		{name: "offset beyond the end", path: "/api/tasks?offset=1000"},
		{name: "blank offset", path: "/api/tasks?offset="},
		{name: "offset that is no number", path: "/api/tasks?offset=x"},
		{name: "by an unknown key", path: "/api/tasks?sort_by=uuid"},
		{name: "by an unknown key, descending", path: "/api/tasks?sort_by=-nope"},
		{name: "by no key, descending", path: "/api/tasks?sort_by=-"},
		{name: "of a worker", path: "/api/tasks?workername={worker}"},
		{name: "of a worker in capitals", path: "/api/tasks?workername=W1@SHOP&sort_by=name"},
		{name: "of another worker", path: "/api/tasks?workername=w2@shop"},
		{name: "of all workers", path: "/api/tasks?workername=All&taskname=All&state=All&limit=1"},
		{name: "by name", path: "/api/tasks?taskname=shop.add"},
		{name: "by name in capitals", path: "/api/tasks?taskname=SHOP.Add"},
		{name: "by part of a name", path: "/api/tasks?taskname=shop"},
		{name: "by state", path: "/api/tasks?state=FAILURE"},
		{name: "by state in small letters", path: "/api/tasks?state=success"},
		{name: "by no state", path: "/api/tasks?state=NOPE"},
		{name: "blank filters", path: "/api/tasks?state=&workername=&taskname=&search=&received_start=&limit=2"},
		{name: "unknown parameter", path: "/api/tasks?nope=1&limit=1"},
		{name: "received since", path: "/api/tasks?received_start=2020-01-01+00:00"},
		{name: "received later", path: "/api/tasks?received_start=2098-01-01+00:00"},
		{name: "received until", path: "/api/tasks?received_end=2020-1-1+0:00"},
		{name: "received at no time", path: "/api/tasks?received_start=yesterday"},
		{name: "received on no day", path: "/api/tasks?received_end=2026-02-30+00:00"},
		{name: "received with seconds", path: "/api/tasks?received_end=2026-02-20+00:00:00"},
		{name: "invalid search", path: "/api/tasks?search=ab"},
		{name: "unknown method of tasks", method: "PUT", path: "/api/tasks", differs: "method", umbel: "405"},
		{name: "head of tasks", method: "HEAD", path: "/api/tasks", differs: "HEAD", umbel: "200"},
		{name: "tasks with a slash", path: "/api/tasks/", differs: "trailing slash", umbel: "308"},

		{name: "one worker that was inspected now", path: "/api/workers?refresh=1&workername={worker}"},
		{name: "all workers that were inspected now", path: "/api/workers?refresh=true"},
		{name: "one worker", path: "/api/workers?workername={worker}"},
		{name: "all workers", path: "/api/workers"},
		{name: "workers of no name", path: "/api/workers?workername="},
		{name: "status", path: "/api/workers?status=1"},
		{name: "status of one worker is that of all", path: "/api/workers?status=Y&workername=nope"},
		{name: "unknown worker", path: "/api/workers?workername=nope"},
		{name: "refresh that is no boolean", path: "/api/workers?refresh=2"},
		{name: "blank refresh", path: "/api/workers?refresh="},
		{name: "status that is no boolean", path: "/api/workers?status=x"},

		{name: "queues", path: "/api/queues/length", moves: true}, // RabbitMQ adds statistics later

		{name: "workers in JSON", path: "/workers?json=1"},
		{name: "workers in JSON at the root", path: "/?json=on"},
		{name: "workers in JSON that is no boolean", path: "/workers?json=x"},
		{name: "workers as before", path: "/dashboard?json=1", differs: "dashboard", umbel: `200 {"data": [{`},

		{name: "datatable without arguments", path: "/tasks/datatable"},
		{name: "datatable without a column", path: "/tasks/datatable?draw=1&start=0&length=1"},
		{name: "datatable of no number", path: "/tasks/datatable?draw=x&start=0&length=1&order[0][column]=0"},
		{name: "datatable with an invalid search", path: "/tasks/datatable?draw=7&start=0&length=10&order%5B0%5D%5Bcolumn%5D=0&search%5Bvalue%5D=ab"},
		{name: "datatable of all", path: table(5, "started", "desc", "")},
		{name: "datatable of less than none", path: "/tasks/datatable?draw=1&start=0&length=-1&order%5B0%5D%5Bcolumn%5D=0"},
		{name: "datatable by a form", method: "POST", path: "/tasks/datatable", form: strings.TrimPrefix(table(0, "name", "desc", "shop"), "/tasks/datatable?")},
	}
	for _, key := range []string{"name", "-name", "state", "-state", "received", "-received", "started", "-started"} {
		list = append(list, call{name: "by " + key, path: "/api/tasks?sort_by=" + key})
	}
	for _, key := range []string{"uuid", "args", "result", "runtime", "retries", "worker", "nope"} {
		list = append(list, call{name: "datatable by " + key, path: table(1, key, "asc", "state:success")})
	}
	for _, search := range []string{
		"hello", `"hello world"`, `args:"hello world"`, `kwargs:label="some value"`, "kwargs:n=1", "kwargs:on=true", "kwargs:n=2",
		"a&b<c>", "state:failure", "state:failure OR state:pending", "name:shop.ADD (kwargs:currency=EUR OR args:'(1, 1)')",
		"name:shop", "result:3]", "worker:w1@shop state:success", "pending", "success texts", "abc OR", "-abc", "NOT abc", "(abc", `"abc`,
		"SHOP.fail", "at last", `"at last"`, "☃☃☃", "'☃'", "out of stock",
	} {
		list = append(list, call{name: "search " + search, path: "/api/tasks?search=" + escape(search)})
	}
	return list
}
