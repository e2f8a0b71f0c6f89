package celery

import (
	"errors"

	"github.com/umbelhq/umbel/monitor/transport"
)

// Envelope is a message as Kombu keeps it in Redis.
type Envelope struct {
	transport.Publishing
	Exchange    string
	RoutingKey  string
	DeliveryTag string
}

// Append appends the envelope as JSON to dst.
func (e Envelope) Append(dst []byte) ([]byte, error) { return dst, errors.New("not there yet") }

// ParseEnvelope reads an envelope. The body is a copy.
func ParseEnvelope(b []byte) (Envelope, error) { return Envelope{}, errors.New("not there yet") }
