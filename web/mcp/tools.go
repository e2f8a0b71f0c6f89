package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxLimit     = 50 // items of a page
	defaultLimit = 20
)

type none struct{}

type tasksInput struct {
	Query  string `json:"query,omitempty" jsonschema:"Query, at most 2,048 bytes; empty for all tasks."`
	Sort   string `json:"sort,omitempty" jsonschema:"sent, received, started, finished, wait, run or retries, or name, worker, queue or state in alphabetical order; with a leading - for descending order. Tasks without the field are left out. Default: newest change first."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Number of tasks, 1 to 50. Default 20."`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of an earlier result of the same query and sort."`
}

type taskInput struct {
	ID string `json:"id" jsonschema:"Task ID."`
}

type failuresInput struct {
	Show   string `json:"show,omitempty" jsonschema:"open (default, those that recurred included), resolved or all."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Number of groups, 1 to 50. Default 20."`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of an earlier result with the same show."`
}

type failureInput struct {
	ID string `json:"id" jsonschema:"Group ID of list_failures, 16 hexadecimal digits."`
}

type workersInput struct {
	Status string `json:"status,omitempty" jsonschema:"online, late (heartbeats are missing), offline or stopping. Default: all."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Number of workers, 1 to 50. Default 20."`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of an earlier result with the same status."`
}

type workerInput struct {
	Name string `json:"name" jsonschema:"Node name, such as celery@host."`
}

type queuesInput struct {
	Hidden bool   `json:"hidden,omitempty" jsonschema:"Include queues internal to Celery."`
	Limit  int    `json:"limit,omitempty" jsonschema:"Number of queues, 1 to 50. Default 20."`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of an earlier result with the same hidden."`
}

const queryHelp = "A query has conditions such as state:failure,retry name:billing.* run:>2s received:-1h.. " +
	"(worker:celery@a OR queue:slow) -exc:~timeout. Fields: id, name, state, is (active, finished, lost, orphaned, dismissed, retried, " +
	"redelivered, truncated), worker, queue, root, parent, failure (a group ID), args, kwargs, result, exc, trace, times (sent, received, " +
	"started, finished, updated, eta), durations (wait, run, such as >500ms), retries. * stands for any text in a word, ~ before a value " +
	"finds it within a text, a time is relative (-1h..) or a date, words without a field are searched in all texts."

func addTools(s *sdk.Server, c *client) {
	add(s, "status", "Get the health of Umbel and of its connection to the broker, the lag (latency_seconds, from receiving events to "+
		"applying them), rates of events per second, and the numbers of tasks by state and name and of workers by status. "+
		"Counts are of what is in memory.", c.status)
	add(s, "search_tasks", "Find tasks. "+queryHelp+" Results leave out executions, children and tracebacks: get_task has them. "+
		"total is exact up to 10,000. Arguments and results are Python reprs, which Celery cuts at 1,024 characters.", c.searchTasks)
	add(s, "get_task", "Get a task with its executions, and its events in causal order.", c.task)
	add(s, "list_failures", "List groups of failed tasks with the same cause, most recent failure first. trend is failures per hour of the last 24.",
		c.failures)
	add(s, "get_failure", "Get a group of failed tasks. search_tasks with the query failure:ID finds its tasks.", c.failure)
	add(s, "list_workers", "List workers by name, with their load, queues and running tasks as last reported.", c.workers)
	add(s, "get_worker", "Get a worker. search_tasks with the query worker:NAME is:active finds what it is doing.", c.worker)
	add(s, "list_queues", "List queues with messages ready and unacknowledged, messages per second in and out, age of the next message "+
		"and estimated seconds until empty.", c.queues)
}

// result is what a tool found.
type result struct {
	body map[string]any
	goOn func(n int) string // how to get what is behind the first n items
}

// add adds a tool that only reads.
func add[In any](s *sdk.Server, name, description string, find func(ctx context.Context, in In) (result, error)) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // made of our own types alone
	}
	restrict(schema.Properties)
	t := &sdk.Tool{
		Name: name, Description: description, InputSchema: schema,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false)},
	}
	sdk.AddTool(s, t, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		found, err := find(ctx, in)
		if err != nil {
			return nil, nil, err // becomes a result that says so
		}
		text := bounded(found.body, found.goOn)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
	})
}

// restrict adds the limits of arguments that tags cannot express.
func restrict(properties map[string]*jsonschema.Schema) {
	for name, p := range properties {
		switch name {
		case "limit":
			p.Minimum, p.Maximum = new(1.0), new(float64(maxLimit))
		case "id", "name":
			p.MinLength, p.MaxLength = new(1), new(512)
		case "query":
			p.MaxLength = new(2048)
		case "show":
			p.Enum = []any{"open", "resolved", "all"}
		case "status":
			p.Enum = []any{"online", "late", "offline", "stopping"}
		}
	}
}

func (c *client) status(ctx context.Context, _ none) (result, error) {
	body, err := c.get(ctx, "/overview", nil)
	return result{body: body}, err
}

func (c *client) searchTasks(ctx context.Context, in tasksInput) (result, error) {
	body, err := c.get(ctx, "/tasks", params("q", in.Query, "sort", in.Sort, "cursor", in.Cursor, "limit", limit(in.Limit)))
	for _, item := range items(body) {
		if task, ok := item.(map[string]any); ok {
			delete(task, "executions")
			delete(task, "children")
			delete(task, "traceback")
		}
	}
	return result{body, byCursor}, err
}

func (c *client) task(ctx context.Context, in taskInput) (result, error) {
	if in.ID == "export" { // there the API exports tasks
		return result{}, errors.New("there is no task export")
	}
	path := "/tasks/" + url.PathEscape(in.ID)
	task, err := c.get(ctx, path, nil)
	if err != nil {
		return result{}, err
	}
	events, err := c.get(ctx, path+"/events", nil)
	return result{body: map[string]any{"task": task, "events": items(events)}}, err
}

func (c *client) failures(ctx context.Context, in failuresInput) (result, error) {
	body, err := c.get(ctx, "/failures", params("show", in.Show, "cursor", in.Cursor, "limit", limit(in.Limit)))
	return result{body, byCursor}, err
}

func (c *client) failure(ctx context.Context, in failureInput) (result, error) {
	body, err := c.get(ctx, "/failures/"+url.PathEscape(in.ID), nil)
	return result{body: body}, err
}

func (c *client) workers(ctx context.Context, in workersInput) (result, error) {
	body, err := c.get(ctx, "/workers", params("status", in.Status, "cursor", in.Cursor, "limit", limit(in.Limit)))
	return result{body, byCursor}, err
}

func (c *client) worker(ctx context.Context, in workerInput) (result, error) {
	body, err := c.get(ctx, "/workers/"+url.PathEscape(in.Name), nil)
	return result{body: body}, err
}

func (c *client) queues(ctx context.Context, in queuesInput) (result, error) {
	hidden := ""
	if in.Hidden {
		hidden = "true"
	}
	body, err := c.get(ctx, "/queues", params("hidden", hidden, "cursor", in.Cursor, "limit", limit(in.Limit)))
	return result{body, byCursor}, err
}

// byCursor says how to go on in a list with cursors: the cursor behind items that are left out would skip them.
func byCursor(n int) string {
	return fmt.Sprintf("Ask again with limit %d, then go on with the cursor of that result.", max(n, 1))
}

func items(body map[string]any) []any {
	list, _ := body["items"].([]any)
	return list
}

func limit(n int) string { return strconv.Itoa(cmp.Or(n, defaultLimit)) }

// params returns URL parameters from names and values, without those that are empty.
func params(pairs ...string) url.Values {
	v := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			v.Set(pair[0], pair[1])
		}
	}
	return v
}
