package flower

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

// workerRoutes adds what is known of workers.
func (a *API) workerRoutes() {
	a.add(http.MethodGet, "/api/workers", auth.View, a.inspectedWorkers)
	a.add(http.MethodGet, "/dashboard", auth.View, a.dashboard)
}

// inspectedWorkers returns what workers reply to inspections, by name.
func (a *API) inspectedWorkers(r *request) (any, error) {
	refresh, err := r.flag("refresh")
	if err != nil {
		return nil, err
	}
	status, err := r.flag("status")
	if err != nil {
		return nil, err
	}
	name := r.arguments["workername"]
	if refresh {
		a.inspections.refresh(r.Context(), name)
	}
	if status {
		return a.aliveWorkers(), nil
	}
	if name != "" {
		w, ok := a.inspections.one(r.Context(), name)
		if !ok {
			return nil, unknownWorker(name)
		}
		return object{{name, w.object(r.payload())}}, nil
	}
	workers := a.inspections.all(r.Context())
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(workers)) {
		o = append(o, member{name, workers[name].object(r.payload())})
	}
	return o, nil
}

// unknownWorker is what Flower answers for a worker that it does not know.
func unknownWorker(name string) error {
	return &failure{http.StatusNotFound, "Unknown worker '" + name + "'"}
}

// object is what a worker replied in Flower's form. Without payload, the lists of tasks are left out.
func (w inspected) object(payload bool) object {
	o := object{}
	for _, m := range methods() {
		value, ok := w.replies[m.name]
		if ok && (payload || !m.alone || m.name == "revoked") {
			o = append(o, member{m.name, value})
		}
	}
	return append(o, member{"timestamp", float64(w.at.UnixMicro()) / 1e6})
}

// aliveWorkers tells which workers send heartbeats.
func (a *API) aliveWorkers() object {
	o := object{}
	a.Backend.View(func(c state.View) {
		for _, w := range c.Workers() {
			o = append(o, member{w.Name, w.Status != state.Offline})
		}
	})
	return o
}

// WantsJSON reports whether a request for a page of workers asks for JSON instead, as Flower's scripts do. Anything but a
// false value does: what is no boolean is refused.
func WantsJSON(r *http.Request) bool {
	given := r.URL.Query()["json"]
	if len(given) == 0 {
		return false
	}
	value, ok := ParseBool(given[len(given)-1])
	return value || !ok
}

// Workers answers requests for pages of workers with json=1.
func (a *API) Workers() http.Handler { return a.serve("/workers", a.workers) }

// dashboard is where versions of Flower before 2.0 had what is at /workers now.
func (a *API) dashboard(r *request) (any, error) {
	if WantsJSON(r.Request) {
		return a.workers(r)
	}
	return redirect("workers"), nil
}

// workers lists workers that have sent events.
func (a *API) workers(r *request) (any, error) {
	refresh, err := r.flag("refresh")
	if err != nil {
		return nil, err
	}
	if _, err := r.flag("json"); err != nil {
		return nil, err
	}
	if refresh && a.Commands != nil {
		for _, name := range a.inspections.alive() {
			_ = a.Commands.Inspector.Cached(name) // has it refreshed
		}
	}
	var workers []state.Worker
	a.Backend.View(func(c state.View) { workers = c.Workers() })
	var events map[string]map[string]uint64
	if a.Events != nil {
		events = a.Events()
	}
	list := []object{}
	for i := range workers {
		if w := &workers[i]; !a.purged(w) {
			list = append(list, workerObject(w, events[w.Name]))
		}
	}
	return object{{"data", list}}, nil
}

// purged reports whether a worker is left out because it has been offline for long.
func (a *API) purged(w *state.Worker) bool {
	return a.PurgeOffline != nil && w.Status == state.Offline &&
		a.Now().Sub(time.UnixMicro(w.LastHeartbeatAt)) >= *a.PurgeOffline
}

// workerObject is a worker in Flower's form, with its events by type.
func workerObject(w *state.Worker, events map[string]uint64) object {
	o := object{}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		o = append(o, member{kind, events[kind]})
	}
	var load any
	if w.Load != nil {
		load = []any{w.Load[0], w.Load[1], w.Load[2]}
	}
	beats := []any{}
	if w.LastHeartbeatAt != 0 && w.Status != state.Offline {
		beats = append(beats, float64(w.LastHeartbeatAt)/1e6)
	}
	var pid any
	if w.PID != 0 {
		pid = w.PID
	}
	freq := any(60) // what Flower takes for granted
	if w.FreqSeconds > 0 {
		freq = w.FreqSeconds
	}
	return append(o,
		member{"hostname", w.Name}, member{"pid", pid}, member{"freq", freq}, member{"heartbeats", beats}, member{"clock", w.Clock},
		member{"active", w.Active}, member{"processed", w.Processed}, member{"loadavg", load}, member{"sw_ident", w.Software},
		member{"sw_ver", w.Version}, member{"sw_sys", w.System}, member{"status", w.Status != state.Offline},
	)
}
