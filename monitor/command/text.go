package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
)

// joinNames joins up to three names, or two and the number of the rest.
func joinNames(items []string) string {
	switch n := len(items); {
	case n == 0:
		return "none"
	case n <= 3:
		return joinAll(items)
	default:
		return fmt.Sprintf("%s, %s and %d more", items[0], items[1], n-2)
	}
}

// joinAll joins names.
func joinAll(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}

// summary describes what a method does with its arguments.
func summary(m remote.Method, args map[string]any) string {
	switch m.Name {
	case "shutdown":
		return "Shut down"
	case "drain":
		if last, _ := args["shutdown"].(bool); last {
			return "Drain, then shut down"
		}
		return "Drain"
	case "pool_grow", "pool_shrink":
		n := args["n"]
		if n == nil {
			n = 1
		}
		return fmt.Sprintf("%s by %v", m.Title, n)
	case "add_consumer":
		return fmt.Sprintf("Consume from queue %v", args["queue"])
	case "cancel_consumer":
		return fmt.Sprintf("Stop consuming from queue %v", args["queue"])
	case "rate_limit":
		switch rate := args["rate_limit"]; fmt.Sprint(rate) {
		case "0", "<nil>":
			return fmt.Sprintf("Lift the rate limit of %v", args["task_name"])
		default:
			return fmt.Sprintf("Limit %v to %v", args["task_name"], rate)
		}
	case "time_limit":
		return fmt.Sprintf("Set time limits of %v: hard %s, soft %s", args["task_name"], seconds(args["hard"]), seconds(args["soft"]))
	case "autoscale":
		return "Autoscale: " + pairs(args)
	case "revoke", "terminate":
		return revocation(m.Name, args)
	}
	if len(args) > 0 {
		return m.Title + ": " + pairs(args)
	}
	return m.Title
}

// formatDuration returns a duration in one unit: 90 s, 5 min, 3 h.
func formatDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int64(d.Round(time.Second).Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int64(d.Round(time.Minute).Minutes()))
	default:
		return fmt.Sprintf("%d h", int64(d.Round(time.Hour).Hours()))
	}
}

// seconds formats a time limit.
func seconds(v any) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%v s", v)
}

// pairs formats arguments.
func pairs(args map[string]any) string {
	list := make([]string, 0, len(args))
	for _, key := range slices.Sorted(maps.Keys(args)) {
		list = append(list, fmt.Sprintf("%s %.100s", key, fmt.Sprint(args[key])))
	}
	return strings.Join(list, ", ")
}

// revocation describes which tasks are revoked or terminated.
func revocation(method string, args map[string]any) string {
	ids, _ := args["task_id"].([]any)
	what := fmt.Sprintf("%d tasks", len(ids))
	if len(ids) == 1 {
		what = fmt.Sprintf("task %v", ids[0])
	}
	if kill, ok := args["terminate"].(bool); !ok || !kill {
		if method == "revoke" {
			return "Revoke " + what
		}
	}
	signal := args["signal"]
	if signal == nil {
		signal = defaultSignal
	}
	return fmt.Sprintf("Terminate %s with %v", what, signal)
}

// keys returns the sorted keys of m.
func keys(m map[string][]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// count formats a number of things.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// plural joins names with the form of the verb that fits.
func plural(items []string, one, many string) string {
	if len(items) == 1 {
		return items[0] + " " + one
	}
	return joinNames(items) + " " + many
}
