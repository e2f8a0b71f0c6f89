package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/mcp"
)

// topWorker, topQueue and topType are what is read of the API. Nil is unknown.
type (
	topWorker struct {
		Name, Status      string
		Active, Processed *int64
		Load              *[3]float64
		Queues            []string
	}
	topQueue struct {
		Name         string
		Ready        *int64
		Consumers    *int64
		Workers      []string
		InPerSecond  *float64 `json:"in_per_second"`
		OutPerSecond *float64 `json:"out_per_second"`
		AgeSeconds   *float64 `json:"age_seconds"`
	}
	topType struct {
		Name              *string
		Succeeded, Failed int64
		PerSecond         *float64 `json:"per_second"`
		FailureShare      *float64 `json:"failure_share"`
		Run, Wait         struct {
			P95Seconds *float64 `json:"p95_seconds"`
		}
	}
	topPage[T any] struct {
		Items []T
		Total int
	}
)

// readTop asks a running Umbel.
func readTop(ctx context.Context, r mcp.Remote) (top, error) {
	var status api.Status
	var overview struct{ Rates api.Rates }
	var workers topPage[topWorker]
	var queues topPage[topQueue]
	var types topPage[topType]
	many := url.Values{"limit": {strconv.Itoa(maxPage)}}
	for _, q := range []struct {
		path   string
		params url.Values
		into   any
	}{
		{"/status", nil, &status},
		{"/overview", nil, &overview},
		{"/workers", many, &workers},
		{"/queues", many, &queues},
		{"/types", url.Values{"limit": {strconv.Itoa(maxPage)}, "last": {"1h"}, "sort": {"-count"}}, &types},
	} {
		if err := fetch(ctx, r, q.path, q.params, q.into); err != nil {
			return top{}, err
		}
	}
	t := top{sentence: status.Sentence, tables: []topTable{workerTable(workers), queueTable(queues), typeTable(types)}}
	if len(status.Reasons) > 0 && status.Level != "flowing" {
		t.sentence += " " + status.Reasons[0].Text
	}
	t.rates = fmt.Sprintf("%.1f received, %.1f succeeded, %.1f failed, %.1f retried a second",
		overview.Rates.Received, overview.Rates.Succeeded, overview.Rates.Failed, overview.Rates.Retried)
	return t, nil
}

// workerTable has those that are not online first, then the busiest.
func workerTable(p topPage[topWorker]) topTable {
	t := topTable{head: []string{"WORKER", "STATUS", "ACTIVE", "PROCESSED", "LOAD", "QUEUES"}, more: p.Total - len(p.Items)}
	rank := func(w topWorker) int {
		return slices.Index([]string{"late", "stopping", "online", "offline"}, w.Status)
	}
	slices.SortStableFunc(p.Items, func(a, b topWorker) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(orZero(b.Active), orZero(a.Active)))
	})
	for _, w := range p.Items {
		load := "?"
		if w.Load != nil {
			load = fmt.Sprintf("%.2f", w.Load[0])
		}
		t.add(w.Name, w.Status, known(w.Active, "%d"), known(w.Processed, "%d"), load, strings.Join(w.Queues, ","))
	}
	return t
}

// queueTable has the longest first.
func queueTable(p topPage[topQueue]) topTable {
	t := topTable{head: []string{"QUEUE", "READY", "CONSUMERS", "IN/S", "OUT/S", "OLDEST"}, more: p.Total - len(p.Items)}
	slices.SortStableFunc(p.Items, func(a, b topQueue) int { return cmp.Compare(orZero(b.Ready), orZero(a.Ready)) })
	for _, q := range p.Items {
		if q.Consumers == nil && q.Workers != nil {
			q.Consumers = new(int64(len(q.Workers)))
		}
		t.add(q.Name, known(q.Ready, "%d"), known(q.Consumers, "%d"), known(q.InPerSecond, "%.1f"), known(q.OutPerSecond, "%.1f"), known(q.AgeSeconds, "%.1fs"))
	}
	return t
}

// typeTable has the most frequent of the last hour first.
func typeTable(p topPage[topType]) topTable {
	t := topTable{head: []string{"TASK TYPE, LAST HOUR", "SUCCEEDED", "FAILED", "SHARE", "RATE/S", "WAIT P95", "RUN P95"}, more: p.Total - len(p.Items)}
	for _, v := range p.Items {
		name := "unknown"
		if v.Name != nil {
			name = *v.Name
		}
		share := "?"
		if v.FailureShare != nil {
			share = fmt.Sprintf("%.1f%%", 100**v.FailureShare)
		}
		t.add(name, strconv.FormatInt(v.Succeeded, 10), strconv.FormatInt(v.Failed, 10), share, known(v.PerSecond, "%.2f"),
			known(v.Wait.P95Seconds, "%.2fs"), known(v.Run.P95Seconds, "%.2fs"))
	}
	return t
}

// add adds a row. Names are not ours: they must not move the cursor.
func (t *topTable) add(cells ...string) {
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func orZero[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// known formats a value, or ? for one that is unknown.
func known[T any](v *T, format string) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf(format, *v)
}
