package celery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	encodingBase64 = "base64" // Kombu's name for it in body_encoding
	maxPriority    = 9
)

var (
	errNoEnvelope = errors.New("not an envelope of Kombu")
	errBody       = errors.New("body of the envelope cannot be decoded")
)

// Envelope is a message as Kombu stores it in Redis.
type Envelope struct {
	broker.Publishing
	Exchange    string
	RoutingKey  string
	DeliveryTag string
}

// envelope is an Envelope as JSON, in Kombu's order.
type envelope struct {
	Body            bodyText        `json:"body"`
	ContentEncoding plainText       `json:"content-encoding,omitempty"`
	ContentType     plainText       `json:"content-type,omitempty"`
	Headers         json.RawMessage `json:"headers"`
	Properties      properties      `json:"properties"`
}

// properties of an envelope. A worker dies of a message without delivery_info or delivery_tag.
type properties struct {
	CorrelationID plainText       `json:"correlation_id,omitempty"`
	ReplyTo       plainText       `json:"reply_to,omitempty"`
	DeliveryMode  json.RawMessage `json:"delivery_mode"`
	Expiration    plainText       `json:"expiration,omitempty"`
	DeliveryInfo  deliveryInfo    `json:"delivery_info"`
	Priority      json.RawMessage `json:"priority"`
	BodyEncoding  plainText       `json:"body_encoding"`
	DeliveryTag   plainText       `json:"delivery_tag"`
}

type deliveryInfo struct {
	Exchange   plainText `json:"exchange"`
	RoutingKey plainText `json:"routing_key"`
}

// plainText is a string. It is read from a string or the text of a number; anything else is empty.
type plainText string

// UnmarshalJSON implements json.Unmarshaler.
func (p *plainText) UnmarshalJSON(b []byte) error {
	*p = ""
	switch c := b[0]; {
	case c == '"':
		return json.Unmarshal(b, (*string)(p))
	case c == '-' || c >= '0' && c <= '9':
		*p = plainText(b)
	}
	return nil
}

// bodyText is a body as it is written, and how many the envelope has: the last one counts.
type bodyText struct {
	text  string
	count int
}

// MarshalJSON implements json.Marshaler.
func (t bodyText) MarshalJSON() ([]byte, error) { return json.Marshal(t.text) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *bodyText) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return errNoEnvelope
	}
	t.count++
	return json.Unmarshal(b, &t.text)
}

// Append appends the envelope as JSON to dst. It fails if a header is not JSON, and without a DeliveryTag.
func (e Envelope) Append(dst []byte) ([]byte, error) {
	if e.DeliveryTag == "" {
		return dst, errors.New("write envelope: no delivery tag")
	}
	headers := []byte("{}")
	var err error
	if e.Headers != nil {
		headers, err = json.Marshal(e.Headers)
	}
	if err != nil {
		return dst, fmt.Errorf("write envelope: %w", err)
	}
	mode := 1
	if e.Persistent {
		mode = 2
	}
	text, err := json.Marshal(envelope{
		Body:            bodyText{text: base64.StdEncoding.EncodeToString(e.Body)},
		ContentEncoding: plainText(e.ContentEncoding),
		ContentType:     plainText(e.ContentType),
		Headers:         headers,
		Properties: properties{
			CorrelationID: plainText(e.CorrelationID), ReplyTo: plainText(e.ReplyTo), DeliveryMode: strconv.AppendInt(nil, int64(mode), 10),
			Expiration:   plainText(e.Expiration),
			DeliveryInfo: deliveryInfo{plainText(e.Exchange), plainText(e.RoutingKey)},
			Priority:     strconv.AppendUint(nil, uint64(min(e.Priority, maxPriority)), 10),
			BodyEncoding: encodingBase64, DeliveryTag: plainText(e.DeliveryTag),
		},
	})
	if err != nil {
		return dst, fmt.Errorf("write envelope: %w", err)
	}
	return append(dst, text...), nil
}

// ParseEnvelope reads an envelope. The body is a copy, compressed if it is in the envelope.
func ParseEnvelope(b []byte) (Envelope, error) {
	t, err := parseEnvelope(b)
	if err != nil {
		return Envelope{}, err
	}
	p := t.Properties
	e := Envelope{
		Publishing: broker.Publishing{
			ContentType: string(t.ContentType), ContentEncoding: string(t.ContentEncoding),
			CorrelationID: string(p.CorrelationID), ReplyTo: string(p.ReplyTo), Expiration: string(p.Expiration),
			Priority: priority(p.Priority), Persistent: unquote(p.DeliveryMode) == "2",
		},
		Exchange: string(p.DeliveryInfo.Exchange), RoutingKey: string(p.DeliveryInfo.RoutingKey),
		DeliveryTag: string(p.DeliveryTag),
	}
	if e.Headers, err = parseHeaders(t.Headers); err != nil {
		return Envelope{}, err
	}
	e.Body, err = decodeBody(string(p.BodyEncoding), []byte(t.Body.text))
	return e, err
}

// parseEnvelope reads the JSON of an envelope. Members of other types than Kombu's are left out.
func parseEnvelope(b []byte) (envelope, error) {
	body, rest := cutBody(b)
	if body != nil { // encoding/json takes its time over long strings
		b = append([]byte(`{"body": ""`), rest...)
	}
	var e envelope
	err := json.Unmarshal(b, &e)
	if _, invalid := errors.AsType[*json.SyntaxError](err); invalid { // perhaps JSON as Python writes it
		var text json.RawMessage
		if text, err = StrictJSON(b); err == nil {
			e = envelope{}
			err = json.Unmarshal(text, &e)
		}
	}
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !mistyped || e.Body.count == 0 {
		return envelope{}, errNoEnvelope
	}
	if body != nil && e.Body.count == 1 {
		e.Body.text = string(body)
	}
	return e, nil
}

// parseHeaders reads the headers of an envelope, which may be missing or null.
func parseHeaders(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	v, err := decodeValue(raw)
	headers, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: headers are not an object", errNoEnvelope)
	}
	return headers, nil
}

// unquote returns the text of a number, which may be written as a string.
func unquote(number json.RawMessage) string { return strings.Trim(string(number), `"`) }

// priority clamps a priority as Kombu does: what is not a number is 0.
func priority(n json.RawMessage) uint8 {
	f, err := strconv.ParseFloat(unquote(n), 64)
	if err != nil || !(f > 0) {
		return 0
	}
	return uint8(min(f, maxPriority))
}

// decodeBody returns the bytes of a body as it is written.
func decodeBody(encoding string, body []byte) ([]byte, error) {
	if !strings.EqualFold(encoding, encodingBase64) {
		return bytes.Clone(body), nil
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(body)))
	n, err := base64.StdEncoding.Decode(b, body)
	if err != nil {
		return nil, errBody
	}
	return b[:n], nil
}

// Unacked is an entry of Kombu's hash of unacknowledged messages.
type Unacked struct {
	Envelope             string // for ParseEnvelope
	Exchange, RoutingKey string
}

// ParseUnacked reads a value of that hash: an array of the envelope, its exchange and its routing key.
func ParseUnacked(text string) (u Unacked, ok bool) {
	s := scanner{text: text}
	open := s.accept('[')
	envelope, err := s.raw()
	exchange, first := s.element()
	key, second := s.element()
	if !open || err != nil || !first || !second || !s.accept(']') || !s.end() {
		return Unacked{}, false
	}
	return Unacked{Envelope: envelope, Exchange: exchange, RoutingKey: key}, true
}

// element reads a comma and a string, which is empty if another value is there.
func (s *scanner) element() (string, bool) {
	if !s.accept(',') {
		return "", false
	}
	if s.next() == '"' {
		text, err := s.str()
		return text, err == nil
	}
	_, err := s.raw()
	return "", err == nil
}
