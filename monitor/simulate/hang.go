package simulate

import "time"

const (
	// hungTask is what waits for an answer without a time limit.
	hungTask = "mail.send_receipt"
	// hungFor is longer than anybody looks.
	hungFor = 365 * 24 * time.Hour
)

// hangs reports whether x, which begins, does not end: the first such task of a gevent worker from Options.Hung on.
func (c *Cluster) hangs(x *execution) bool {
	since := time.Duration(c.now - c.opts.Start.UnixNano())
	if c.opts.Hung == 0 || since < c.opts.Hung || c.hung || x.w.pool != gevent || x.m.task.kind.name != hungTask {
		return false
	}
	c.hung = true
	return true
}
