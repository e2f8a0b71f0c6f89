package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

const (
	maxBeats    = 50 // hosts that are asked
	beatTimeout = time.Second
	beatAge     = 10 * time.Second
)

// beats ask Celery beat whether it runs, by pings to the hosts where it may be. Since version 5.7 it replies, if
// beat_enable_remote_control is set, and it replies no longer once its scheduler is stuck.
type beats = background[[]string] // hosts where it replied

func newBeats(c *common, changed func()) *beats {
	return newBackground(&beats{
		what: "replies of beat", age: beatAge, kept: time.Minute, readers: 1, changed: changed, same: slices.Equal[[]string], log: c.log,
	})
}

// senders are who sends what is scheduled, with whether Celery beat replies on their hosts.
func (p *schedulesPage) senders(ctx context.Context, list []schedules.Schedule, now int64) []templates.Sender {
	by := map[string]*templates.Sender{}
	for i := range list {
		s := &list[i]
		if s.Client == "" {
			continue
		}
		sender := by[s.Client]
		if sender == nil {
			sender = &templates.Sender{Name: s.Client}
			by[s.Client] = sender
		}
		sender.Schedules++
		sender.LastAt = max(sender.LastAt, s.LastAt())
		if s.Status(now) != schedules.OnTime {
			sender.Behind++
		}
	}
	var all []templates.Sender
	replied := map[string]bool{}
	for _, host := range p.answering(ctx, by) {
		replied[host] = true
	}
	for _, s := range by {
		s.Beat = replied[state.Host(s.Name)]
		all = append(all, *s)
	}
	for host := range replied {
		if !slices.ContainsFunc(all, func(s templates.Sender) bool { return strings.HasSuffix(s.Name, "@"+host) }) {
			all = append(all, templates.Sender{Name: remote.BeatNode(host), Beat: true})
		}
	}
	slices.SortFunc(all, func(a, b templates.Sender) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// answering returns the hosts where Celery beat has replied of late, among those of senders and of workers.
func (p *schedulesPage) answering(ctx context.Context, senders map[string]*templates.Sender) []string {
	if p.beats == nil || p.instant != nil {
		return nil
	}
	var hosts []string
	add := func(node string) {
		if host := state.Host(node); host != "" {
			hosts = append(hosts, host)
		}
	}
	for name := range senders {
		add(name)
	}
	p.backend.View(func(c state.View) {
		for _, w := range c.Workers() {
			if w.Status == state.Online {
				add(w.Name)
			}
		}
	})
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	hosts = hosts[:min(len(hosts), maxBeats)]
	if len(hosts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 0) // what is known by now
	defer cancel()
	replied, _, _ := p.beats.get(ctx, strings.Join(hosts, " "), func(ctx context.Context) ([]string, error) { return p.ping(ctx, hosts) })
	return replied
}

func (p *schedulesPage) ping(ctx context.Context, hosts []string) ([]string, error) {
	q := remote.Request{Method: "ping", Timeout: beatTimeout}
	for _, host := range hosts {
		q.Destination = append(q.Destination, remote.BeatNode(host))
	}
	a, err := p.commands.Client.Call(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("ping beat: %w", err)
	}
	var replied []string
	for _, r := range a.Items {
		if host := state.Host(r.Node); host != "" && r.OK == "pong" {
			replied = append(replied, host)
		}
	}
	slices.Sort(replied)
	return slices.Compact(replied), nil
}
