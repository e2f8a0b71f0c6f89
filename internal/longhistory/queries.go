package longhistory

import (
	"fmt"

	"github.com/umbelhq/umbel/state/query"
)

// Group is what a query is an example of.
type Group int

// Groups of queries.
const (
	List Group = iota
	Filter
	Text
)

// Query asks for a page of tasks.
type Query struct {
	Group  Group
	Name   string
	Query  func(i int) string // for the i-th time
	Sort   query.Sort
	Middle bool // the page begins in the middle of the list
	Want   int  // tasks that the page has at least, unless the search was given up
}

func always(q string) func(int) string { return func(int) string { return q } }

func numbered(format string, n int) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i%n) }
}

// Queries returns what people ask for, in all ways in which it is answered.
func (n Tasks) Queries() []Query {
	return []Query{
		{Group: List, Name: "list", Query: always(""), Want: 50},
		{Group: List, Name: "middle", Query: always(""), Middle: true, Want: 50},
		{Group: Filter, Name: "sort=-run", Query: always(""), Sort: query.Sort{Field: query.Run}, Want: 50},
		{Group: Filter, Name: "sort=sent", Query: always(""), Sort: query.Sort{Field: query.Sent, Ascending: true}, Want: 50},
		{Group: Filter, Name: "id", Query: func(i int) string { return "id:" + n.ID(i*7919%int(n)) }, Want: 1},
		{Group: Filter, Name: "id prefix", Query: func(i int) string { return "id:" + n.ID(i * 7919 % int(n))[:5] + "*" }, Want: 1},
		{Group: Filter, Name: "name", Query: numbered("name:billing.charge_%d", 1), Want: 50},
		{Group: Filter, Name: "name pattern", Query: always("name:billing.*"), Want: 50},
		{Group: Filter, Name: "worker", Query: numbered("worker:celery@web-%d", 16), Want: 50},
		{Group: Filter, Name: "queue", Query: always("queue:high"), Want: 50},
		{Group: Filter, Name: "client", Query: always("client:gen101@api-1"), Want: 50},
		{Group: Filter, Name: "exchange", Query: always(`exchange:*`), Want: 50},
		{Group: Filter, Name: "routing key", Query: always("routing_key:default"), Want: 50},
		{Group: Filter, Name: "root", Query: func(i int) string { return "root:" + n.ID(i*7919%int(n)/5*5) }, Want: 2},
		{Group: Filter, Name: "parent", Query: func(i int) string { return "parent:" + n.ID(i*7919%int(n)/5*5+3) }, Want: 1},
		{Group: Filter, Name: "state", Query: always("state:failure"), Want: 50},
		{Group: Filter, Name: "not state", Query: always("-state:success"), Want: 50},
		{Group: Filter, Name: "active", Query: always("is:active"), Want: 50},
		{Group: Filter, Name: "retried", Query: always("is:retried"), Want: 50},
		{Group: Filter, Name: "sent", Query: always("sent:-1h.."), Want: 50},
		{Group: Filter, Name: "sent, old", Query: always("sent:..-5d"), Want: 50},
		{Group: Filter, Name: "started", Query: always("started:-3d..-2d"), Want: 50},
		{Group: Filter, Name: "finished", Query: always("finished:-30m.."), Want: 50},
		{Group: Filter, Name: "wait, many", Query: always("wait:>100ms"), Want: 50},
		{Group: Filter, Name: "wait, few", Query: always("wait:>2s"), Want: 30},
		{Group: Filter, Name: "run, 6000", Query: always("run:>1.5s"), Want: 50},
		{Group: Filter, Name: "retries", Query: always("retries:>1"), Want: 50},
		{Group: Filter, Name: "state and name", Query: always("state:failure name:billing.*"), Want: 50},
		{Group: Filter, Name: "state and worker", Query: numbered("state:failure worker:celery@web-%d", 16), Want: 50},
		{Group: Filter, Name: "state and run", Query: always("state:failure run:>1s"), Want: 0},
		{Group: Filter, Name: "name and run, sorted", Query: always("name:mail.* run:>500ms"), Sort: query.Sort{Field: query.Run}, Want: 50},
		{Group: Filter, Name: "or", Query: always("state:failure OR run:>2s"), Want: 50},
		{Group: Text, Name: "text, one task", Query: func(i int) string { return "args:" + n.Order(i*7919%int(n)) }, Want: 1},
		{Group: Text, Name: "text, rare", Query: numbered("exc:\"order %d is\"", 100_000), Want: 0},
		{Group: Text, Name: "text, common", Query: always("currency"), Want: 50},
		{Group: Text, Name: "text, failures", Query: always("trace:gateway.py"), Want: 50},
		{Group: Text, Name: "text, absent", Query: always("nowheretobefound"), Want: 0},
		{Group: Text, Name: "text, absent of common parts", Query: numbered("kwargs:\"99, 'amount': 499.%02d, 'currency': 'usd\"", 100), Want: 0},
		{Group: Text, Name: "free text", Query: numbered("\"customer': %d,\"", 100_000), Want: 0},
		{Group: Text, Name: "free text, name", Query: always("charge_4"), Want: 50},
		{Group: Text, Name: "text, two letters", Query: always("kwargs:us"), Want: 50},
		{Group: Text, Name: "text and state", Query: always("state:failure exc:closed"), Want: 50},
		{Group: Text, Name: "text and name", Query: always("name:billing.charge_4 kwargs:chf"), Want: 50},
	}
}
