package remote

import (
	"encoding/json"
	"strings"
	"time"
)

// decodeStats reads statistics, nil if they are not an object. Pools differ in what they report.
func decodeStats(v json.RawMessage) *Stats {
	f := fieldsOf(v)
	if f == nil {
		return nil
	}
	s := &Stats{
		Uptime:        uptime(f["uptime"]),
		Total:         make(map[string]int64),
		PrefetchCount: whole(f["prefetch_count"]),
		Broker:        fieldsOf(f["broker"]),
		RUsage:        fieldsOf(f["rusage"]),
		Pool:          decodePool(fieldsOf(f["pool"])),
		Raw:           bounded(v),
	}
	if n := whole(f["pid"]); n != nil {
		s.PID = *n
	}
	if n := whole(f["clock"]); n != nil {
		s.Clock = *n
	}
	for name, n := range fieldsOf(f["total"]) {
		if n := whole(n); n != nil && len(s.Total) < maxNames {
			s.Total[name] = *n
		}
	}
	if a := fieldsOf(f["autoscaler"]); a != nil {
		s.Autoscaler = &Autoscaler{}
		for key, to := range map[string]*int64{
			"min": &s.Autoscaler.Min, "max": &s.Autoscaler.Max, "current": &s.Autoscaler.Current, "qty": &s.Autoscaler.Quantity,
		} {
			if n := whole(a[key]); n != nil {
				*to = *n
			}
		}
	}
	return s
}

// uptime is a number of seconds.
func uptime(v json.RawMessage) time.Duration {
	n := float(v)
	if n == nil || *n < 0 || *n > 1e9 {
		return 0
	}
	return time.Duration(*n * float64(time.Second))
}

// decodePool reads what a pool reports of itself.
func decodePool(f fields) Pool {
	p := Pool{
		Implementation:   f.text("implementation"),
		MaxConcurrency:   whole(f["max-concurrency"]),
		MaxTasksPerChild: f.text("max-tasks-per-child"),
		Writes:           fieldsOf(f["writes"]),
	}
	p.Kind = poolKind(p.Implementation)
	if n := whole(f["max-tasks-per-child"]); n != nil {
		p.MaxTasksPerChild = string(f["max-tasks-per-child"])
	}
	if timeouts, ok := elements(f["timeouts"]); ok && len(timeouts) == 2 {
		p.SoftLimit, p.HardLimit = limit(timeouts[0]), limit(timeouts[1])
	}
	processes, reported := elements(f["processes"])
	for _, item := range processes[:min(len(processes), maxTasks)] {
		if pid := whole(item); pid != nil {
			p.Processes = append(p.Processes, *pid)
		}
	}
	p.Slots = p.MaxConcurrency
	if reported { // a prefork pool may have grown since, which max-concurrency does not show
		n := int64(len(processes))
		p.Slots = &n
	}
	return p
}

// poolKind is the pool's name, as celery worker -P has it.
func poolKind(implementation string) string {
	module, _, _ := strings.Cut(implementation, ":")
	kind := module[strings.LastIndexByte(module, '.')+1:]
	switch kind {
	case "thread":
		return "threads"
	case "asynpool":
		return "prefork"
	}
	return kind
}
