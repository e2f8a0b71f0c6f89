package api

import (
	"context"
	"math"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

// Worker is a worker. Null means unknown.
type Worker struct {
	Name            string      `json:"name" doc:"Node name." example:"celery@host"`
	PID             *Int        `json:"pid"`
	Status          string      `json:"status" enum:"online,late,offline,stopping"`
	LastHeartbeatAt Time        `json:"last_heartbeat_at" doc:"When the last heartbeat arrived, by Umbel's clock."`
	FreqSeconds     *float64    `json:"freq_seconds" doc:"Heartbeat interval."`
	Active          *Int        `json:"active" doc:"Number of running tasks, as last reported."`
	Processed       *Int        `json:"processed" doc:"Number of tasks accepted since the worker started, as last reported."`
	Load            *[3]float64 `json:"load" doc:"Load average of the host over 1, 5 and 15 minutes."`
	Software        *string     `json:"software"`
	Version         *string     `json:"version"`
	System          *string     `json:"system"`
	Restarts        Int         `json:"restarts" doc:"Number of restarts seen."`
	Clock           *Int        `json:"clock" doc:"Latest corrected Lamport clock."`
	ClockOffset     *float64    `json:"clock_offset_seconds" doc:"How far the worker's wall clock is most likely ahead of Umbel's, negative if behind: between the bounds that follow."`
	ClockOffsetLow  *float64    `json:"clock_offset_low_seconds" doc:"How far the worker's wall clock is ahead of Umbel's at least; null if not known."`
	ClockOffsetHigh *float64    `json:"clock_offset_high_seconds" doc:"How far the worker's wall clock is ahead of Umbel's at most; null if not known, as it is until the worker has replied to a heartbeat command."`
	ClockSetAt      Time        `json:"clock_set_at" doc:"When Umbel last found that the worker's wall clock had been set; null if it never did."`
	Queues          []string    `json:"queues" doc:"Consumed queues, as last reported."`
	Pool            *string     `json:"pool" doc:"Pool implementation, as last reported." example:"prefork"`
	MemoryBytes     *Int        `json:"memory_bytes" doc:"The most memory that its main process has used, as last inspected."`
	FailureShare    *float64    `json:"failure_share" doc:"Failed tasks among those that succeeded or failed on it in the last 24 hours, 0 to 1; null if none did."`
	ReportedAt      Time        `json:"reported_at" doc:"When the worker last reported its queues and pool; null if it never has."`
}

type listWorkers struct {
	NamePage
	Status string `query:"status" enum:"online,late,offline,stopping" doc:"Only workers with this status."`
	Sort   string `query:"sort" maxLength:"64" default:"name" doc:"One of name, status, pool, active, queues, unfinished, processed, failed (the share), memory, load, version, clock and heartbeat; with a leading - for descending order. Unknown values come last." example:"-memory"`
}

// FromWorker returns the worker in the form of the API.
func FromWorker(w state.Worker) Worker {
	d := Worker{
		Name: w.Name, PID: positive(w.PID), Status: string(w.Status),
		LastHeartbeatAt: Time(w.LastHeartbeatAt),
		Active:          integer(w.Active), Processed: integer(w.Processed), Load: load(w.Load),
		Software: w.Software, Version: w.Version, System: w.System,
		Restarts: Int(w.Restarts), Clock: positive(w.Clock), ClockSetAt: Time(w.ClockSetAt),
	}
	if w.ClockOffsetMicros != nil {
		d.ClockOffset = new(float64(*w.ClockOffsetMicros) / 1e6)
	}
	d.ClockOffsetLow, d.ClockOffsetHigh = w.ClockOffset.LowSeconds(), w.ClockOffset.HighSeconds()
	if w.FreqSeconds > 0 {
		d.FreqSeconds = number(&w.FreqSeconds)
	}
	if r := w.LastReport; r != nil {
		d.Queues, d.Pool, d.ReportedAt = slices.Sorted(slices.Values(r.Queues)), text(r.Pool), Time(r.At)
	}
	return d
}

// withTopology sets the queues and pools of workers that reported them when all were inspected last.
func (a *api) withTopology(workers ...Worker) []Worker {
	if a.commands == nil {
		return workers
	}
	known := a.commands.Inspector.PeekTopology()
	for i := range workers {
		w := &workers[i]
		if !slices.Contains(known.Expected, w.Name) || slices.Contains(known.Missing, w.Name) {
			continue // what it last reported stands
		}
		w.Queues = nil
		if p, ok := known.Pools[w.Name]; ok && p.Kind != "" {
			w.Pool = &p.Kind
		}
		for queue, names := range known.Queues {
			if slices.Contains(names, w.Name) {
				w.Queues = append(w.Queues, queue)
			}
		}
		slices.Sort(w.Queues)
	}
	return workers
}

// load returns l, nil if it has no JSON form.
func load(l *[3]float64) *[3]float64 {
	if l == nil {
		return nil
	}
	for _, f := range l {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
	}
	return l
}

// registerWorkers adds the operations that read workers.
func (a *api) registerWorkers(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-workers", "/workers", "List workers"), a.workers)
	huma.Register(h, operation(h, auth.View, "get-worker", "/workers/{name}", "Get a worker", notFound), a.worker)
}

func (a *api) workers(ctx context.Context, r *listWorkers) (*response[List[Worker]], error) {
	if err := checkSort(r.Sort, workers.SortKeys()); err != nil {
		return nil, err
	}
	var list []state.Worker
	a.backend.View(func(c state.View) { list = c.Workers() })
	if r.Status != "" {
		list = slices.DeleteFunc(list, func(w state.Worker) bool { return string(w.Status) != r.Status })
	}
	rows, pages := a.workerRows(ctx, list), pageByName[workers.Row]
	if r.Sort != "" && r.Sort != "name" {
		workers.Sort(rows, r.Sort)
		pages = pageInOrder
	}
	page, next, err := pages(r.NamePage, rows, func(w workers.Row) string { return w.Name })
	if err != nil {
		return nil, err
	}
	return &response[List[Worker]]{List[Worker]{
		Items: a.withTopology(mapSlice(page, fromRow)...), Next: next, Total: new(len(list)),
	}}, nil
}

// workerRows returns workers with what inspections and counters say of them. What cannot be read is not known.
func (a *api) workerRows(ctx context.Context, list []state.Worker) []workers.Row {
	var known remote.Topology
	if a.commands != nil {
		known = a.commands.Inspector.PeekTopology()
	}
	var counts workers.Counts
	if a.at.IsZero() {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var err error
		if counts, err = workers.ReadCounts(ctx, a.backend.History(), a.now()); err != nil {
			a.logger.WarnContext(ctx, "counters of workers not read", "error", err)
		}
	}
	return workers.Rows(list, known, counts, nil)
}

func fromRow(r workers.Row) Worker {
	w := FromWorker(r.Worker)
	w.MemoryBytes = integer(r.Memory)
	if share, ok := r.Ends.FailureShare(); ok {
		w.FailureShare = &share
	}
	return w
}

func (a *api) worker(ctx context.Context, r *WorkerPath) (*response[Worker], error) {
	var worker state.Worker
	var known bool
	var others []state.Worker
	a.backend.View(func(c state.View) {
		if worker, known = c.Worker(r.Name); !known {
			others = c.Workers()
		}
	})
	if !known {
		return nil, workerNotFound(r.Name, mapSlice(others, func(w state.Worker) string { return w.Name }))
	}
	row := a.workerRows(ctx, []state.Worker{worker})[0]
	return &response[Worker]{a.withTopology(fromRow(row))[0]}, nil
}
