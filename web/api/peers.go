package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/web/auth"
)

// Peers says which Umbel on the broker asks the workers.
type Peers struct {
	State  string  `json:"state" enum:"joining,leads,follows,fallback,off,read_only" doc:"Part of this Umbel: leads and off ask the workers; fallback asks because it is unknown who leads."`
	Asks   bool    `json:"asks" doc:"Whether this Umbel asks the workers for events and inspects them."`
	Since  Time    `json:"since" doc:"Time of the last change of state; null if read-only."`
	Reason *string `json:"reason" doc:"Why the state is fallback or off."`
	ID     *string `json:"id" doc:"Of this Umbel; a new one whenever it joins."`
	Host   *string `json:"host"`
	PID    int     `json:"pid"`
	Items  []Peer  `json:"items" nullable:"false" doc:"The others, at most 64."`
}

// Peer is another Umbel on the broker.
type Peer struct {
	ID      string `json:"id"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Leads   bool   `json:"leads" doc:"Whether it asks the workers."`
	Silent  bool   `json:"silent" doc:"Whether it was silent for longer than its lease of 10 s."`
	Since   Time   `json:"since" doc:"When this Umbel heard of it first."`
	HeardAt Time   `json:"heard_at" doc:"When it was heard last."`
}

func (a *api) registerPeers(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-peers", "/peers", "List the Umbels on the broker"), a.listPeers)
}

func (a *api) listPeers(context.Context, *struct{}) (*response[Peers], error) {
	if a.peers == nil {
		return &response[Peers]{Body: Peers{State: "read_only", Items: []Peer{}}}, nil
	}
	return &response[Peers]{Body: fromPeers(a.peers.Status())}, nil
}

func fromPeers(s peers.Status) Peers {
	p := Peers{
		State: string(s.State), Asks: s.Asks(), Since: timeOf(s.Since), Reason: text(s.Reason), ID: text(s.ID), Host: text(s.Host), PID: s.PID,
		Items: make([]Peer, len(s.Peers)),
	}
	for i, o := range s.Peers {
		p.Items[i] = Peer{ID: o.ID, Host: o.Host, PID: o.PID, Leads: o.Leads, Silent: o.Silent, Since: timeOf(o.Since), HeardAt: timeOf(o.HeardAt)}
	}
	return p
}
