package amqp

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/transport"
)

// ParseQueues reads a page of the management API's list of queues.
func ParseQueues(answer json.RawMessage) ([]transport.Queue, int, error) { return parseQueues(answer) }
