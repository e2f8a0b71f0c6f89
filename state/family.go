package state

import (
	"bytes"
	"slices"
)

// relation ties a task into its workflow.
type relation struct {
	root, parent taskKey
	row          uint32
	prev, next   uint32 // siblings
}

// relateAs links the task to its root and parent as the event names them.
func (c *Cluster) relateAs(i uint32, r *row, e *Event) {
	var root, parent taskKey
	if e.Has(FieldRootID) {
		root = keyBeside(e.RootID, e.ID, r.id)
	}
	if e.Has(FieldParentID) {
		parent = keyBeside(e.ParentID, e.ID, r.id)
	}
	c.relate(i, r, root, parent)
}

// keyBeside returns the key of an id. That of another id is known.
func keyBeside(id, other string, known taskKey) taskKey {
	if id == other {
		return known
	}
	k, _ := key(id)
	return k
}

// relate ties the task to its root and parent, zero where an event names none. Children wait for a parent that
// is not in memory under its id, for as long as they are in memory themselves.
func (c *Cluster) relate(i uint32, r *row, root, parent taskKey) {
	if parent == r.id { // a retry calls itself its parent
		parent = taskKey{}
	}
	if r.relation == 0 {
		if parent == (taskKey{}) && (root == r.id || root == (taskKey{})) {
			return
		}
		r.relation = c.relations.alloc()
		c.relations.at(r.relation).row = i
	}
	rel := c.relations.at(r.relation)
	// Events of one task that disagree are forged: any choice will do that arrival cannot change.
	if bytes.Compare(root[:], rel.root[:]) > 0 {
		rel.root = root
	}
	if bytes.Compare(parent[:], rel.parent[:]) > 0 {
		c.leave(r.relation, rel)
		rel.parent = parent
		rel.next = c.families[parent]
		if rel.next != 0 {
			c.relations.at(rel.next).prev = r.relation
		}
		c.families[parent] = r.relation
	}
}

// leave takes a relation out of its parent's children.
func (c *Cluster) leave(n uint32, rel *relation) {
	if rel.parent == (taskKey{}) {
		return
	}
	if rel.next != 0 {
		c.relations.at(rel.next).prev = rel.prev
	}
	if rel.prev != 0 {
		c.relations.at(rel.prev).next = rel.next
	} else if c.families[rel.parent] == n {
		if rel.next == 0 {
			delete(c.families, rel.parent)
		} else {
			c.families[rel.parent] = rel.next
		}
	}
	rel.prev, rel.next = 0, 0
}

func (c *Cluster) unrelate(r *row) {
	if r.relation == 0 {
		return
	}
	c.leave(r.relation, c.relations.at(r.relation))
	c.relations.release(r.relation)
	r.relation = 0
}

// maxChildren bounds the children listed with a task.
const maxChildren = 1000

// children lists the ids of the tasks whose parent this is, by stamp.
func (c *Cluster) children(r *row) []string {
	var rows []*row
	for n := c.families[r.id]; n != 0 && len(rows) < maxChildren; n = c.relations.at(n).next {
		rows = append(rows, c.rows.at(c.relations.at(n).row))
	}
	slices.SortFunc(rows, func(a, b *row) int { return c.position(a).Compare(c.position(b)) })
	ids := make([]string, len(rows))
	for i, child := range rows {
		ids[i] = c.id(child)
	}
	return ids
}
