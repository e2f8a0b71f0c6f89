package templates_test

import (
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func clusterScenes() map[string]scene {
	l := layout("", "/")
	l.Overall, l.Title = true, "Clusters"
	l.User = templates.User{Name: "ann@example.com", Role: "viewer", SignOut: true, Tokens: true}
	member := layout(templates.SectionSettings, "")
	member.Above, member.Cluster = "/ops", "shop"
	member.Clusters = []templates.Link{{Text: "shop", Href: "/ops/clusters/shop/tokens"}, {Text: "billing", Href: "/ops/clusters/billing/tokens"}}
	stuck := flow.Verdict{Level: flow.Stuck, Reasons: []flow.Reason{{Level: flow.Stuck, Text: "No worker is online.", Path: "/workers"}}}
	evilText := evil
	failed, waiting := 0.125, int64(12_345)
	return map[string]scene{
		"clusters": {l, templates.Clusters{Clusters: []templates.Cluster{
			{
				Name: "shop", Href: "/ops/clusters/shop/", Ready: true, Connected: true, Broker: "amqp://guest:***@rabbit:5672//", Rate: 12.5, Failed: &failed,
				Online: 3, Backlog: &waiting, Flow: flow.Verdict{Level: flow.Flowing, Reasons: []flow.Reason{{Level: flow.Flowing, Text: "3 workers are online."}}},
			},
			{Name: "billing", Href: "/ops/clusters/billing/", Ready: true, Broker: evil, Flow: stuck},
			{Name: "staging", Href: "/ops/clusters/staging/", Unavailable: evil},
			{Name: "new", Href: "/ops/clusters/new/"},
		}}},
		"clusters-tasks": {l, templates.ClusterTasks{Text: evil, Limit: 2, Problems: []string{evil}, Matches: []templates.ClusterMatches{
			{Cluster: "shop", Href: "/ops/clusters/shop/tasks?q=x", Count: &history.Count{N: 1_234, Exact: true}},
			{Cluster: evil, Href: "/ops/clusters/evil/tasks", Count: &history.Count{N: 10_000}},
			{Cluster: "far", Href: "/ops/far/tasks"},
		}, Tasks: []templates.ClusterTask{
			{Cluster: "shop", URLs: urls(), Task: state.Task{ID: evil, State: state.Failure, Exception: &evilText, UpdatedAt: 1}},
			{Cluster: evil, URLs: urls(), Task: state.Task{ID: "b", State: state.Success}},
		}}},
		"clusters-member": {member, templates.Tokens{}},
	}
}
