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
	shownID   = 8  // characters of an id in lists, which people copy
	leastID   = 4  // characters worth a search
	maxAlikes = 10 // tasks compared
)

// NearestTask returns the id of a known task with the same beginning that was probably meant, empty if there is none.
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

// unknownTask returns the error that there is no such task, with the nearest one.
func (s *Service) unknownTask(ctx context.Context, field, id string) *Error {
	e := &Error{Kind: NotFound, Field: field, Message: fmt.Sprintf("there is no task %.255q", id)}
	e.Nearest = NearestTask(ctx, s.tasks, id, s.now())
	return e
}
