package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

const (
	shownID   = 8  // characters of an id that lists show, and people copy
	leastID   = 4  // that tell anything
	maxAlikes = 10 // tasks that are looked at
)

// NearestTask returns the id of the known task that was probably meant, one that begins like id, empty if none is near.
func NearestTask(ctx context.Context, tasks Tasks, id string, now time.Time) string {
	if len(id) < leastID || strings.Contains(id, "*") {
		return ""
	}
	like := query.Term{Field: query.ID, Values: []query.Value{{Match: query.Pattern, Text: id[:min(len(id), shownID)] + "*"}}}
	page, err := tasks.Tasks(ctx, history.TaskRequest{Query: query.New(like), Limit: maxAlikes, Now: now})
	if err != nil {
		return ""
	}
	var ids []string
	for i := range page.Tasks {
		ids = append(ids, page.Tasks[i].ID)
	}
	return query.Nearest(id, ids)
}

// unknownTask says that there is no such task, and which may have been meant.
func (s *Service) unknownTask(ctx context.Context, field, id string) *Error {
	e := &Error{Kind: NotFound, Field: field, Message: fmt.Sprintf("there is no task %.255q", id)}
	e.Nearest = NearestTask(ctx, s.tasks, id, s.now())
	return e
}
