package web

import (
	"net/url"
	"regexp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// customer finds the number of a customer among the arguments of a task of the demo.
var customer = regexp.MustCompile(`'customer_id': (\d+)`)

// tour are the links of the tour of the demo, to what there is now.
func (p *overviewPage) tour(v templates.Overview) []templates.Link {
	at := func(path string) string { return p.urls.Prefix + path }
	failing := at("/failures")
	if len(v.Failing) > 0 {
		failing = at(templates.FailurePath(v.Failing[0].ID.String()))
	}
	search, words := "customer_id", "Search for a customer"
	for i := range v.Failures {
		if kwargs := v.Failures[i].Kwargs; kwargs != nil {
			if m := customer.FindStringSubmatch(*kwargs); m != nil {
				search, words = m[1], "Search for customer "+m[1]
				break
			}
		}
	}
	links := []templates.Link{
		{Text: "See the failing group", Href: failing},
		{Text: words, Href: at("/tasks?" + url.Values{"q": {search}}.Encode())},
	}
	for i := range v.Workers {
		if w := &v.Workers[i]; w.Status == state.Online && p.urls.IsAdmin && p.urls.CanSend {
			drain := url.Values{"method": {"drain"}, "worker": {w.Name}}
			links = append(links, templates.Link{Text: "Drain a worker", Href: at("/act/worker?" + drain.Encode())})
			break
		}
	}
	return append(links,
		templates.Link{Text: "Follow a workflow", Href: at(templates.WorkflowsPath)},
		templates.Link{Text: "Compare task types", Href: at(templates.TypesPath)})
}
