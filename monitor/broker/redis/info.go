package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

// nearlyFull is the share of maxmemory from which on Redis may soon refuse what is published.
const nearlyFull = 0.9

// info reads what Redis reports of itself, which users may lack the permission for.
func (c *controlConn) info(ctx context.Context) (broker.Info, error) {
	i := broker.Info{Kind: "Redis", VisibilityTimeout: new(c.broker.options.VisibilityTimeout)}
	var text string
	err := c.do(ctx, "read info", func() (err error) {
		text, err = c.conn.client.Info(ctx).Result()
		if isRefusal(err) && code(err) != "LOADING" {
			return nil
		}
		return err
	})
	if err != nil {
		return i, err
	}
	fields := make(map[string]string)
	for row := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(row), ":"); ok {
			fields[name] = value
		}
	}
	i.Version = fields["redis_version"]
	i.Memory = count(fields["used_memory"])
	i.Clients = count(fields["connected_clients"])
	if limit := count(fields["maxmemory"]); limit != nil && *limit > 0 {
		i.MemoryLimit = limit
	}
	i.Warnings = warnings(i, fields)
	return i, nil
}

// count reads a number that may be missing.
func count(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func warnings(i broker.Info, fields map[string]string) []string {
	var all []string
	policy := fields["maxmemory_policy"]
	if i.MemoryLimit != nil && strings.HasPrefix(policy, "allkeys-") {
		text := fmt.Sprintf("Redis deletes keys when its memory is full (maxmemory-policy %s), queues with all their "+
			"tasks among them: set maxmemory-policy to noeviction.", policy)
		if n := count(fields["evicted_keys"]); n != nil && *n > 0 {
			text += fmt.Sprintf(" It has deleted %d keys since it started.", *n)
		}
		all = append(all, text)
	}
	if i.MemoryLimit != nil && i.Memory != nil && float64(*i.Memory) > nearlyFull*float64(*i.MemoryLimit) {
		all = append(all, fmt.Sprintf("Redis uses %d %% of its maxmemory: when it is full, nothing can be published.",
			*i.Memory*100 / *i.MemoryLimit))
	}
	if role := fields["role"]; role != "" && role != "master" {
		all = append(all, "This Redis is a replica: what is published here is refused. Give Umbel the URL of the master.")
	}
	return all
}
