package rabbitmq

import (
	"fmt"
	"math"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
)

// sendable is m as the library wants it. AMQP has no room for names and properties of more than 255 bytes.
func sendable(m broker.Publishing, key string) (amqp091.Publishing, error) {
	for _, text := range []struct{ what, value string }{
		{"name of the queue", key},
		{"content type", m.ContentType},
		{"content encoding", m.ContentEncoding},
		{"correlation id", m.CorrelationID},
		{"queue for replies", m.ReplyTo},
		{"expiration", m.Expiration},
	} {
		if len(text.value) > maxNameBytes {
			return amqp091.Publishing{}, fmt.Errorf("%w: its %s is longer than %d bytes",
				broker.ErrRefused, text.what, maxNameBytes)
		}
	}
	headers, err := toTable(m.Headers)
	if err != nil {
		return amqp091.Publishing{}, fmt.Errorf("%w: header %w", broker.ErrRefused, err)
	}
	mode := amqp091.Transient
	if m.Persistent {
		mode = amqp091.Persistent
	}
	return amqp091.Publishing{
		Headers: headers, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, DeliveryMode: mode,
		Priority: m.Priority, CorrelationId: m.CorrelationID, ReplyTo: m.ReplyTo, Expiration: m.Expiration,
		Body: m.Body,
	}, nil
}

func toTable(m map[string]any) (amqp091.Table, error) {
	if m == nil {
		return nil, nil
	}
	t := make(amqp091.Table, len(m))
	for name, value := range m {
		if len(name) > maxNameBytes {
			return nil, fmt.Errorf("%.20q… is longer than %d bytes", name, maxNameBytes)
		}
		field, err := toField(value)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		t[name] = field
	}
	return t, nil
}

func toField(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64, float64, string:
		return v, nil
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			field, err := toField(element)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list[i] = field
		}
		return list, nil
	case map[string]any:
		return toTable(v)
	}
	return nil, fmt.Errorf("is of type %T, which cannot be sent", value)
}

// received converts a delivery.
func received(d amqp091.Delivery) broker.Publishing {
	return broker.Publishing{
		Headers: fromTable(d.Headers), ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		Persistent: d.DeliveryMode == amqp091.Persistent, Priority: d.Priority, CorrelationID: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, Body: d.Body,
	}
}

func fromTable(t amqp091.Table) map[string]any {
	if t == nil {
		return nil
	}
	m := make(map[string]any, len(t))
	for name, field := range t {
		m[name] = fromField(field)
	}
	return m
}

// fromField turns the types of AMQP, of which it has many, into those of broker.Publishing.
func fromField(field any) any {
	switch v := field.(type) {
	case nil, bool, int64, float64, string:
		return v
	case byte:
		return int64(v)
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case uint16:
		return int64(v)
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case float32:
		return float64(v)
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case amqp091.Decimal:
		return float64(v.Value) / math.Pow10(int(v.Scale))
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = fromField(element)
		}
		return list
	case amqp091.Table:
		return fromTable(v)
	}
	return fmt.Sprint(field)
}
