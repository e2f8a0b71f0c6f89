package rabbitmq

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/broker"
)

// ParseQueues reads a page of the management API's list of queues.
func ParseQueues(answer json.RawMessage) ([]broker.Queue, int, error) { return parseQueues(answer) }
