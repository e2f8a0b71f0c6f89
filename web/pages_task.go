package web

import (
	"context"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// maxRelatives bounds how many children are looked up for one page.
const maxRelatives = 100

func (p *pages) taskPage(ctx context.Context, id string) (page, error) {
	var v templates.Task
	var version uint64
	known := false
	p.cluster.View(func(c *state.Cluster) {
		version = c.Version()
		if v.Task, known = c.Task(id); !known {
			return
		}
		v.Events = c.TaskEvents(id)
		v.Root = relative(c, v.Task.RootID, id)
		v.Parent = relative(c, v.Task.ParentID, id)
		for _, child := range v.Task.Children {
			if len(v.Children) == maxRelatives {
				break
			}
			v.Children = append(v.Children, lookUp(c, child))
		}
	})
	if !known {
		return page{}, errUnknown
	}
	v.Alike = p.alike(ctx, &v.Task)
	return page{
		topic:   "task/" + id,
		address: templates.TaskPath(id),
		title:   taskTitle(v.Task),
		section: templates.SectionTasks,
		view:    v,
		version: version,
	}, nil
}

func taskTitle(t state.Task) string {
	if t.Name == nil {
		return t.ID
	}
	return *t.Name
}

// relative is the task that id refers to, nil if that is nothing or the task itself.
func relative(c *state.Cluster, id *string, self string) *templates.Relative {
	if id == nil || *id == "" || *id == self {
		return nil
	}
	return new(lookUp(c, *id))
}

func lookUp(c *state.Cluster, id string) templates.Relative {
	t, ok := c.Task(id)
	if !ok {
		return templates.Relative{ID: id}
	}
	return templates.Relative{ID: id, Name: t.Name, State: t.State}
}

// unknownTask tells why there may be no such task.
func (p *pages) unknownTask(id string) templates.Problem {
	v := templates.Problem{
		Title: "Unknown task",
		Message: "No event of task " + id + " has been seen. It may have been sent before Umbel began to listen, " +
			"or its worker sends no task events.",
		Back:     p.site.Prefix + "/tasks",
		BackText: "All tasks",
	}
	p.cluster.View(func(c *state.Cluster) {
		if c.Counts().Evicted > 0 {
			v.Message = "Task " + id + " is not held: either no event of it has been seen, or it was evicted to make " +
				"room for newer tasks."
		}
	})
	return v
}
