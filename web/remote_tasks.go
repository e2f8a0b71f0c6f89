package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/mcp"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
)

// How long a search waits for another Umbel, and how many wait for one at once.
const (
	remoteSearchTimeout = 2 * time.Second
	maxRemoteSearches   = 8
)

// findAt returns tasks of a cluster that another Umbel watches, or a sentence that says why they are not among those found.
func (c *Clusters) findAt(ctx context.Context, one Cluster, q query.Tasks) ([]foundTask, string) {
	asked := q.Request(c.pages.now()).Query.In(one.Name)
	if asked.Has(lang.Equal(lang.ID, "")) { // the query names other clusters alone
		return nil, ""
	}
	// Its token is one for all visitors here, so none of them sees by it, or finds out, what some may not see.
	asked, err := payload.Query(asked)
	var tasks []state.Task
	if err == nil {
		tasks, err = one.Remote.find(ctx, asked, cmp.Or(q.Limit, query.DefaultLimit))
	} else {
		err = errors.New("arguments, results and exceptions are searched there only")
	}
	if err != nil {
		return nil, fmt.Sprintf("The tasks of %s are not here: %s.", one.Name, strings.TrimRight(remoteText(err.Error()), "."))
	}
	urls := templates.URLs{Prefix: strings.TrimRight(one.Remote.URL, "/"), Asset: c.pages.urls.Asset, HidesPayload: true}
	found := make([]foundTask, 0, len(tasks))
	for _, t := range tasks {
		found = append(found, foundTask{t, one.Name, urls})
	}
	return found, ""
}

// find asks the other Umbel for tasks. One that has not answered lately is not waited for.
func (r *Remote) find(ctx context.Context, q lang.Query, limit int) ([]state.Task, error) {
	if why := r.shown().Unavailable; why != "" {
		return nil, errors.New(strings.ToLower(why[:1]) + why[1:])
	}
	if r.searching.Add(1) > maxRemoteSearches {
		r.searching.Add(-1)
		return nil, errors.New("too many searches wait for its Umbel")
	}
	defer r.searching.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, remoteSearchTimeout)
	defer cancel()
	from := mcp.Remote{URL: strings.TrimRight(r.URL, "/"), Token: r.Token, Transport: r.Transport}
	text, err := from.Get(ctx, "/tasks", url.Values{"q": {q.String()}, "limit": {strconv.Itoa(limit)}})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("its Umbel does not answer within %v", remoteSearchTimeout)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // a sentence
	}
	var answer struct{ Items []api.Task }
	if json.Unmarshal(text, &answer) != nil || answer.Items == nil {
		return nil, errors.New("the answers of its Umbel are not those of Umbel")
	}
	list := make([]state.Task, 0, min(len(answer.Items), limit))
	for i := range answer.Items {
		if t := &answer.Items[i]; len(list) < limit && t.ID != "" && len(t.ID) <= maxRemoteText {
			list = append(list, remoteTask(t))
		}
	}
	return list, nil
}

// remoteTask is what is shown of a task of another Umbel: no payload.
func remoteTask(d *api.Task) state.Task {
	short := func(s *string) *string {
		if s == nil {
			return nil
		}
		return new(truncate.Text(*s, maxRemoteText))
	}
	concluded := func(c *api.Conclusion) *state.Conclusion {
		if c == nil {
			return nil
		}
		return &state.Conclusion{Reason: state.Reason(c.Reason), Evidence: remoteText(c.Evidence), At: int64(c.At)}
	}
	return state.Task{
		ID: d.ID, Name: short(d.Name), State: state.State(truncate.Text(d.State, maxRemoteText)),
		Worker: short(d.Worker), Client: short(d.Client), Queue: short(d.Queue), Exchange: short(d.Exchange), RoutingKey: short(d.RoutingKey),
		Retries: (*int64)(d.Retries), RootID: short(d.RootID), ParentID: short(d.ParentID), SentAt: int64(d.SentAt), UpdatedAt: int64(d.UpdatedAt),
		Times: state.Times{
			ReceivedAt: int64(d.ReceivedAt), StartedAt: int64(d.StartedAt), SucceededAt: int64(d.SucceededAt), FailedAt: int64(d.FailedAt),
			RetriedAt: int64(d.RetriedAt), RevokedAt: int64(d.RevokedAt), RejectedAt: int64(d.RejectedAt),
		},
		WaitSeconds: d.WaitSeconds, RuntimeSeconds: d.RuntimeSeconds, Redelivered: d.Redelivered, Orphaned: d.Orphaned, Returned: d.Returned,
		Lost: concluded(d.Lost), Dismissed: concluded(d.Dismissed), Truncated: d.Truncated,
	}
}
