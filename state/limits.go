package state

import "unsafe"

// Footprint is about how many bytes of memory a cluster takes: for its tasks, and for their text.
type Footprint struct {
	Count       int // of the tasks
	Tasks, Text int64
}

// Footprint returns how much memory the cluster takes now.
func (c *Cluster) Footprint() Footprint {
	const indexed = 16 // bytes of a task in the index of ids
	n := int64(c.rows.held*slabChunk)*int64(unsafe.Sizeof(row{})) + int64(c.records.held*slabChunk)*int64(unsafe.Sizeof(record{})) +
		int64(c.relations.held*slabChunk)*int64(unsafe.Sizeof(relation{})) + int64(c.index.len()*indexed) +
		int64(len(c.byStamp.chunks)*listChunk)*int64(unsafe.Sizeof(listItem{}))
	for i := range c.packs {
		n += int64(c.packs[i].held * slabChunk * c.packs[i].width)
	}
	return Footprint{Count: c.index.len(), Tasks: n, Text: c.text.held()}
}

// Limits returns how many tasks, and how many bytes of text, are kept at most.
func (c *Cluster) Limits() (tasks int, text int64) {
	return c.options.MaxTasks, int64(c.text.keep) * c.text.size
}

// SetLimits changes what is kept at most, to 1 or more each, and drops what is beyond it: the oldest text, and the oldest
// tasks, as Apply does when there is one too many.
func (c *Cluster) SetLimits(tasks int, text int64) {
	c.text.limit(text)
	if tasks != c.options.MaxTasks {
		c.options.MaxTasks, c.evictAbove = tasks, tasks
		c.evict()
	}
}
