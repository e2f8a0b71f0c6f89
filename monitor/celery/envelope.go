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

// Kombu's own words for how a body is written into an envelope.
const (
	encodingBase64 = "base64"
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

// properties are those of an envelope, in Kombu's order. A worker dies of a message without delivery_info or
// delivery_tag.
type properties struct {
	CorrelationID string       `json:"correlation_id,omitempty"`
	ReplyTo       string       `json:"reply_to,omitempty"`
	DeliveryMode  int          `json:"delivery_mode"`
	Expiration    string       `json:"expiration,omitempty"`
	DeliveryInfo  deliveryInfo `json:"delivery_info"`
	Priority      uint8        `json:"priority"`
	BodyEncoding  string       `json:"body_encoding"`
	DeliveryTag   string       `json:"delivery_tag"`
}

type deliveryInfo struct {
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
}

// Append appends the envelope as JSON to dst. It fails if a header is no JSON, and without a DeliveryTag.
func (e Envelope) Append(dst []byte) ([]byte, error) {
	if e.DeliveryTag == "" {
		return dst, errors.New("write envelope: no delivery tag")
	}
	headers := e.Headers
	if headers == nil {
		headers = map[string]any{}
	}
	mode := 1
	if e.Persistent {
		mode = 2
	}
	text, err := json.Marshal(struct {
		Body            []byte         `json:"body"` // as base64
		ContentEncoding string         `json:"content-encoding,omitempty"`
		ContentType     string         `json:"content-type,omitempty"`
		Headers         map[string]any `json:"headers"`
		Properties      properties     `json:"properties"`
	}{
		Body:            append([]byte{}, e.Body...), // nil would be null
		ContentEncoding: e.ContentEncoding,
		ContentType:     e.ContentType,
		Headers:         headers,
		Properties: properties{
			CorrelationID: e.CorrelationID, ReplyTo: e.ReplyTo, DeliveryMode: mode, Expiration: e.Expiration,
			DeliveryInfo: deliveryInfo{e.Exchange, e.RoutingKey},
			Priority:     min(e.Priority, maxPriority), BodyEncoding: encodingBase64, DeliveryTag: e.DeliveryTag,
		},
	})
	if err != nil {
		return dst, fmt.Errorf("write envelope: %w", err)
	}
	return append(dst, text...), nil
}

// ParseEnvelope reads an envelope. The body is a copy, compressed if it is in the envelope.
func ParseEnvelope(b []byte) (Envelope, error) {
	r := envelopeReader{scanner: scanner{text: string(b)}}
	if err := r.read(); err != nil {
		return Envelope{}, err
	}
	e := r.envelope
	var err error
	if e.Headers, err = parseHeaders(r.headers); err != nil {
		return Envelope{}, err
	}
	if e.Body, err = decodeBody(r.bodyEncoding, []byte(r.body)); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

// parseHeaders reads the raw value of headers, which may be missing or null.
func parseHeaders(raw string) (map[string]any, error) {
	if raw == "" || raw == "null" {
		return nil, nil
	}
	s := scanner{text: raw}
	v, err := s.value()
	headers, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: headers are no object", errNoEnvelope)
	}
	return headers, nil
}

// envelopeReader walks over an envelope. Whatever it does not know is skipped.
type envelopeReader struct {
	scanner
	envelope     Envelope // without its body and headers
	body         string   // as written
	headers      string   // raw
	bodyEncoding string
	found        bool // a body
	cut          bool // a body before what is read
}

// read walks over all of it, or over what follows a body that was found already.
func (r *envelopeReader) read() error {
	first := !r.cut
	if first && !r.accept('{') {
		return errNoEnvelope
	}
	for ; ; first = false {
		key, ok, err := r.key(first)
		if err == nil && ok {
			err = r.top(key)
		}
		switch {
		case err != nil:
			return errNoEnvelope
		case !ok && r.end() && (r.found || r.cut):
			return nil
		case !ok:
			return errNoEnvelope
		}
	}
}

// inside reports whether an object is next and enters it, or skips another value.
func (r *envelopeReader) inside() (bool, error) {
	if r.accept('{') {
		return true, nil
	}
	_, err := r.raw()
	return false, err
}

func (r *envelopeReader) top(key string) (err error) {
	switch key {
	case "body":
		if r.next() != '"' {
			return errNoEnvelope
		}
		r.found = true
		r.body, err = r.str()
	case "content-type":
		r.envelope.ContentType, err = r.plain()
	case "content-encoding":
		r.envelope.ContentEncoding, err = r.plain()
	case "headers":
		r.headers, err = r.raw()
	case "properties":
		err = r.properties()
	default:
		_, err = r.raw()
	}
	return err
}

func (r *envelopeReader) properties() error {
	ok, err := r.inside()
	for first := true; ok && err == nil; first = false {
		var key string
		if key, ok, err = r.key(first); ok {
			err = r.property(key)
		}
	}
	return err
}

func (r *envelopeReader) property(key string) (err error) {
	e := &r.envelope
	switch key {
	case "body_encoding":
		r.bodyEncoding, err = r.plain()
	case "delivery_info":
		err = r.deliveryInfo()
	case "correlation_id":
		e.CorrelationID, err = r.plain()
	case "reply_to":
		e.ReplyTo, err = r.plain()
	case "expiration":
		e.Expiration, err = r.plain()
	case "delivery_tag":
		e.DeliveryTag, err = r.plain()
	case "delivery_mode":
		var mode string
		mode, err = r.plain()
		e.Persistent = mode == "2"
	case "priority":
		var n string
		n, err = r.plain()
		e.Priority = priority(n)
	default:
		_, err = r.raw()
	}
	return err
}

func (r *envelopeReader) deliveryInfo() error {
	ok, err := r.inside()
	for first := true; ok && err == nil; first = false {
		var key string
		if key, ok, err = r.key(first); !ok || err != nil {
			break
		}
		switch key {
		case "exchange":
			r.envelope.Exchange, err = r.plain()
		case "routing_key":
			r.envelope.RoutingKey, err = r.plain()
		default:
			_, err = r.raw()
		}
	}
	return err
}

// plain reads a string, or the text of a number. Whatever else is there counts as empty.
func (r *envelopeReader) plain() (string, error) {
	switch b := r.next(); {
	case b == '"':
		return r.str()
	case b == '-' || b >= '0' && b <= '9':
		return r.raw()
	}
	_, err := r.raw()
	return "", err
}

// priority clamps a priority as Kombu does: what is no number is 0.
func priority(s string) uint8 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) {
		return 0
	}
	return uint8(min(n, maxPriority))
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

// ParseUnacked returns the envelope in a value of Kombu's hash of unacknowledged messages, which is an array of
// the envelope, its exchange and its routing key.
func ParseUnacked(text string) (envelope string, ok bool) {
	envelope, _, ok = parseUnacked(text)
	return envelope, ok
}

// ParseUnackedRoute returns the exchange and routing key of a value of that hash.
func ParseUnackedRoute(text string) (exchange, routingKey string, ok bool) {
	_, route, ok := parseUnacked(text)
	return route[0], route[1], ok
}

func parseUnacked(text string) (envelope string, route [2]string, ok bool) {
	r := envelopeReader{scanner: scanner{text: text}}
	if !r.accept('[') {
		return "", route, false
	}
	envelope, err := r.raw()
	for i := 0; i < len(route) && err == nil; i++ {
		if !r.accept(',') {
			return "", route, false
		}
		route[i], err = r.plain()
	}
	return envelope, route, err == nil && r.accept(']') && r.end()
}
