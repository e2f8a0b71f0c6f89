package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
)

// maxCompared bounds how many workers the settings of one are compared with.
const maxCompared = 20

// maxSettings bounds how many settings of a worker one page shows.
const maxSettings = 1_000

// inspect fills in the inspection of a worker. A worker that is not online is not inspected again: its last replies are
// shown.
func (p *workerPages) inspect(ctx context.Context, v *templates.Worker, t workerAddress) {
	found := p.commands.Inspector.Peek(t.name)
	if v.Worker.Status == state.Online {
		found = p.commands.Inspector.Cached(t.name)
	} else {
		v.Inspection.Why = "The worker is not online."
	}
	if !p.audience.Payload {
		found = payload.Inspection(found)
	}
	v.Inspection.At, v.Inspection.InProgress = micros(found.At), found.Refreshing
	v.Inspection.Errors, v.Inspection.Truncated, v.Inspection.Times = found.Errors, cutLists(found), map[string]int64{}
	for method, at := range found.Times {
		v.Inspection.Times[method] = micros(at)
	}
	if v.Inspection.Why == "" {
		q := t.values()
		q.Set(paramRefresh, "1")
		v.Inspection.Refresh = p.urls.Prefix + templates.WorkerPath(t.name) + "?" + q.Encode()
	}
	switch t.tab {
	case templates.TabNow:
		v.Now = p.held(v.Worker, found, p.counted(ctx))
		if found.Stats != nil && found.Stats.Pool.Slots != nil {
			v.Now.Slots = *found.Stats.Pool.Slots
		}
		p.offer(&v.Now)
	case templates.TabQueues:
		v.Queues = p.consumed(found)
	case templates.TabTasks:
		v.Registered = registered(found)
	case templates.TabConfig:
		v.Config = p.config(found, t)
	case templates.TabSystem:
		v.System = system(found)
	case templates.TabClock:
		v.Clock.Reported = found.Clock
	case templates.TabHistory, templates.TabCommands:
	}
}

// offer notes what can be done to the tasks that a worker holds.
func (p *workerPages) offer(n *templates.WorkerNow) {
	if !p.urls.CanSend {
		return
	}
	var all []*templates.WorkerTask
	var list []state.Task
	p.backend.View(func(c state.View) {
		for _, held := range [][]templates.WorkerTask{n.Active, n.Reserved, n.Scheduled} {
			for i := range held {
				t, ok := c.Task(held[i].ID)
				if !ok {
					t = state.Task{ID: held[i].ID, State: state.Received}
				}
				all, list = append(all, &held[i]), append(list, t)
			}
		}
	})
	revocable, terminable := p.service().Ineligible(revoke, list), p.service().Ineligible(terminate, list)
	for i, t := range all {
		t.Revoke, t.Terminate = revocable[i] == "", terminable[i] == ""
	}
}

// cutLists returns the full lengths of truncated lists, by method.
func cutLists(i remote.Inspection) map[string]int {
	kept := map[string]int{
		"active": len(i.Active), "reserved": len(i.Reserved), "scheduled": len(i.Scheduled), "revoked": len(i.Revoked),
	}
	totals := map[string]int{}
	for method, n := range i.Totals {
		if n > kept[method] {
			totals[method] = n
		}
	}
	return totals
}

// limits are the time limits that hold for a task: its own, else those of its name, else those of the pool.
func limits(r remote.TaskInfo, i remote.Inspection) (soft, hard *float64) {
	soft, hard = r.SoftLimit, r.HardLimit
	for _, t := range i.Registered {
		if t.Name == r.Name || t.Name == r.Type {
			soft, hard = cmp.Or(soft, seconds(t.Info["soft_time_limit"])), cmp.Or(hard, seconds(t.Info["time_limit"]))
			break
		}
	}
	if i.Stats != nil {
		soft, hard = cmp.Or(soft, i.Stats.Pool.SoftLimit), cmp.Or(hard, i.Stats.Pool.HardLimit)
	}
	return soft, hard
}

// seconds reads a time limit, nil if it is none.
func seconds(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f <= 0 {
		return nil
	}
	return &f
}

func (p *workerPages) consumed(i remote.Inspection) []templates.ConsumedQueue {
	others := p.commands.Inspector.CachedTopology().Queues
	var list []templates.ConsumedQueue
	for _, q := range i.Queues {
		shown := templates.ConsumedQueue{ConsumedQueue: q}
		for _, w := range others[q.Name] {
			if w != i.Node {
				shown.Others++
			}
		}
		list = append(list, shown)
	}
	return list
}

func registered(i remote.Inspection) []templates.RegisteredTask {
	var list []templates.RegisteredTask
	for _, r := range i.Registered {
		t := templates.RegisteredTask{Name: r.Name, Limit: r.Info["rate_limit"]}
		var rest []string
		for _, k := range slices.Sorted(maps.Keys(r.Info)) {
			if k != "rate_limit" {
				rest = append(rest, k+"="+r.Info[k])
			}
		}
		t.Info = strings.Join(rest, " ")
		if i.Stats != nil {
			t.Total = new(i.Stats.Total[r.Name])
		}
		list = append(list, t)
	}
	return list
}

// config compares the settings of a worker with those of others that are online.
func (p *workerPages) config(i remote.Inspection, t workerAddress) templates.WorkerConfig {
	v := templates.WorkerConfig{Find: t.find, Differ: t.differ}
	names := map[string]bool{}
	for name := range i.Conf {
		names[name] = true
	}
	var others []remote.Inspection
	if i.Conf != nil {
		others = p.otherConfigs(i.Node, &v)
	}
	for _, o := range others {
		for name := range o.Conf {
			names[name] = true
		}
	}
	v.All = len(names)
	find := strings.ToLower(t.find)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if len(v.Settings) == maxSettings {
			break
		}
		s := templates.Setting{Name: name, Value: plain(i.Conf[name]), Differs: differing(name, i.Conf[name], others)}
		matches := strings.Contains(strings.ToLower(name), find) || strings.Contains(strings.ToLower(s.Value), find)
		if matches && (!t.differ || len(s.Differs) > 0) {
			v.Settings = append(v.Settings, s)
		}
	}
	return v
}

func (p *workerPages) otherConfigs(node string, v *templates.WorkerConfig) []remote.Inspection {
	var list []remote.Inspection
	for _, name := range p.online() {
		if name == node || len(list)+v.Waiting == maxCompared {
			continue
		}
		o := p.commands.Inspector.Cached(name)
		o.Node = name
		if o.Conf == nil {
			v.Waiting++
			continue
		}
		list = append(list, o)
	}
	v.Compared = len(list)
	return list
}

// differing are the workers that have another value of a setting, by value.
func differing(name string, value json.RawMessage, others []remote.Inspection) []templates.Differing {
	var list []templates.Differing
	for _, o := range others {
		theirs := o.Conf[name]
		if bytes.Equal(theirs, value) {
			continue
		}
		shown := plain(theirs)
		at := slices.IndexFunc(list, func(d templates.Differing) bool { return d.Value == shown })
		if at < 0 {
			list, at = append(list, templates.Differing{Value: shown}), len(list)
		}
		list[at].Workers = append(list[at].Workers, o.Node)
	}
	return list
}

// plain is a value without the quotes of JSON, empty if there is none.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && s != "" {
		return s
	}
	return string(v)
}

func system(i remote.Inspection) templates.WorkerSystem {
	s := i.Stats
	if s == nil {
		return templates.WorkerSystem{Report: i.Report}
	}
	v := templates.WorkerSystem{
		Known: true, PID: s.PID, Implementation: s.Pool.Implementation, Kind: s.Pool.Kind, MaxConcurrency: s.Pool.MaxConcurrency,
		Slots: s.Pool.Slots, MaxTasks: s.Pool.MaxTasksPerChild, Soft: s.Pool.SoftLimit, Hard: s.Pool.HardLimit, Prefetch: s.PrefetchCount,
		Writes: params(s.Pool.Writes), Broker: params(s.Broker), Usage: usage(s.RUsage), Report: i.Report,
	}
	if s.Uptime > 0 {
		v.StartedAt = i.Times["stats"].Add(-s.Uptime).UnixMicro()
	}
	if a := s.Autoscaler; a != nil {
		v.Autoscaler = fmt.Sprintf("%d to %d processes, %d now", a.Min, a.Max, a.Current)
	}
	for _, pid := range s.Pool.Processes {
		process := templates.PoolProcess{PID: pid}
		for _, r := range i.Active {
			if r.PID != nil && *r.PID == pid {
				process.Task = new(byWorker(r, i.Times["active"]))
			}
		}
		v.Processes = append(v.Processes, process)
	}
	for name, n := range s.Total {
		v.Totals = append(v.Totals, templates.TaskTotal{Name: name, N: n})
	}
	slices.SortFunc(v.Totals, func(a, b templates.TaskTotal) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
	})
	return v
}

// params are the members of an object that are not empty, by name.
func params(object map[string]json.RawMessage) []templates.Param {
	var list []templates.Param
	for _, k := range slices.Sorted(maps.Keys(object)) {
		switch v := plain(object[k]); v {
		case "", "null", "[]", "{}":
		default:
			list = append(list, templates.Param{Name: strings.ReplaceAll(k, "_", " "), Value: v})
		}
	}
	return list
}

// usage are the resources that a process has used, in words. Those that systems leave at 0 are left out.
func usage(rusage map[string]json.RawMessage) []templates.Param {
	words := []struct{ key, label, format string }{
		{"utime", "CPU, user", "%.2f s"},
		{"stime", "CPU, system", "%.2f s"},
		{"maxrss", "Most memory", "%.0f KiB"},
		{"majflt", "Page faults", "%.0f"},
		{"inblock", "Block reads", "%.0f"},
		{"oublock", "Block writes", "%.0f"},
		{"nvcsw", "Voluntary context switches", "%.0f"},
		{"nivcsw", "Involuntary context switches", "%.0f"},
	}
	var list []templates.Param
	for _, w := range words {
		var f float64
		if json.Unmarshal(rusage[w.key], &f) == nil {
			list = append(list, templates.Param{Name: w.label, Value: fmt.Sprintf(w.format, f)})
		}
	}
	return list
}
