package celery

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// SentRoutingKey is the routing key of the events that Message.SentEvent makes.
const SentRoutingKey = "task.sent"

// sentEvent is the event task-sent as Celery's clients write it (celery/app/amqp.py, celery/events/dispatcher.py).
type sentEvent struct {
	Type       string  `json:"type"`
	Hostname   string  `json:"hostname"`
	UTCOffset  float64 `json:"utcoffset"` // hours to the west
	PID        int     `json:"pid"`
	Clock      int64   `json:"clock"`
	Timestamp  float64 `json:"timestamp"`
	UUID       string  `json:"uuid"`
	RootID     any     `json:"root_id"`
	ParentID   any     `json:"parent_id"`
	Name       string  `json:"name"`
	Args       any     `json:"args"`
	Kwargs     any     `json:"kwargs"`
	Retries    int     `json:"retries"`
	ETA        any     `json:"eta"`
	Expires    any     `json:"expires"`
	Queue      string  `json:"queue"`
	Exchange   string  `json:"exchange"`
	RoutingKey string  `json:"routing_key"`
}

// SentEvent returns the task-sent event of a message, p as Publishing returned it, which went to a queue at the
// moment now. clock is that of the sender, Message.Origin, after it was advanced. The event is written by serializer.
func (m Message) SentEvent(p broker.Publishing, queue string, clock int64, now time.Time, serializer Serializer) (broker.Publishing, error) {
	_, east := now.Zone()
	e := sentEvent{
		Type: "task-sent", Hostname: m.Origin, UTCOffset: float64(-east) / 3600, PID: os.Getpid(), Clock: clock,
		Timestamp: float64(now.UnixMicro()) / 1e6,
		UUID:      m.ID, RootID: p.Headers["root_id"], ParentID: p.Headers["parent_id"], Name: m.Name,
		Args: p.Headers["argsrepr"], Kwargs: p.Headers["kwargsrepr"], Retries: m.Retries,
		ETA: p.Headers["eta"], Expires: p.Headers["expires"], Queue: queue, RoutingKey: queue,
	}
	body, err := json.Marshal(e)
	if err != nil {
		return broker.Publishing{}, fmt.Errorf("write event of task %s: %w", m.ID, err)
	}
	event := broker.Publishing{Headers: map[string]any{"hostname": m.Origin}}
	serializer.label(&event)
	if event.Body, err = serializer.encode(body, "event"); err != nil {
		return broker.Publishing{}, fmt.Errorf("write event of task %s: %w", m.ID, err)
	}
	return event, nil
}
