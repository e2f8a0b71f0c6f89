// Package live keeps open pages current over one WebSocket per tab: a topic is rendered once per
// change, compared with what was sent before, and the difference goes to all its subscribers as one
// frame. It renders nothing itself, knows no state, and queues nothing per client.
package live

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/web/auth"
)

// ErrNoTopic says that a Source does not know a topic.
var ErrNoTopic = errors.New("no such topic")

// Fragment is the HTML of one element. ID is the id attribute of that element.
type Fragment struct {
	ID, HTML string
}

// List is an element whose children are rows in order, keyed by id. ID is the id attribute of the
// parent, a tbody for instance.
type List struct {
	ID   string
	Rows []Fragment
}

// Snapshot is what a topic shows at one time. Ids are unique within it. Equal
// states give equal snapshots: the HTML does not depend on the time of rendering.
type Snapshot struct {
	Regions []Fragment // elements that are replaced as a whole
	Lists   []List
}

// Source renders topics. It is safe for concurrent use.
type Source interface {
	// Snapshot renders a topic as an audience sees it now, for the fair.Client of ctx, and ends when ctx does: when it takes too long,
	// or nobody watches any more. The error is ErrNoTopic if there is no such topic; any other is taken as passing.
	Snapshot(ctx context.Context, a auth.Audience, topic string) (Snapshot, error)
	// Action is what those may take who watch a topic.
	Action(topic string) auth.Action
	// Changed returns a channel that is closed at the next change of anything. Taken before
	// Snapshot, no change goes unseen.
	Changed() <-chan struct{}
}
