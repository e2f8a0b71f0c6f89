package celery

import (
	"bytes"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	maxKnown  = 4096 // envelopes remembered
	maxKey    = 1024 // bytes of one, without body and delivery tag
	tagBytes  = 36   // of the UUID that is the delivery tag
	beforeTag = `"delivery_tag": "`
	afterTag  = `"}}`
)

// EnvelopeParser parses the envelopes of events. Everything around the body is the same in all events of one type
// from one sender, except the delivery tag at the end, so it is parsed once and remembered. The zero value is
// ready to use. It is not safe for concurrent use.
type EnvelopeParser struct{ known map[string]envelope }

// Parse returns the message in an envelope. It does not keep b.
func (p *EnvelopeParser) Parse(b []byte) (broker.Message, error) {
	body, rest := cutBody(b)
	key := withoutTag(body, rest)
	e, ok := p.known[string(key)]
	if !ok {
		var err error
		if e, err = parseEnvelope(b); err != nil {
			return broker.Message{}, err
		}
		body = []byte(e.Body.text)
		if key != nil && e.Body.count == 1 {
			p.remember(key, e)
		}
	}
	return e.message(body)
}

// remember stores what the envelopes with this key have in common.
func (p *EnvelopeParser) remember(key []byte, e envelope) {
	if p.known == nil || len(p.known) >= maxKnown {
		p.known = make(map[string]envelope)
	}
	e.Body = bodyText{}
	p.known[string(key)] = e
}

// message returns the event in an envelope with this body, as it is written.
func (e envelope) message(body []byte) (broker.Message, error) {
	body, err := decodeBody(string(e.Properties.BodyEncoding), body)
	if err != nil {
		return broker.Message{}, err
	}
	if strings.Contains(string(e.Headers), `"`+headerCompression+`"`) {
		headers, err := parseHeaders(e.Headers)
		if err != nil {
			return broker.Message{}, err
		}
		p, err := Decompress(broker.Publishing{Headers: headers, Body: body})
		if err != nil {
			return broker.Message{}, err
		}
		body = p.Body
	}
	return broker.Message{
		Body: body, ContentType: string(e.ContentType), ContentEncoding: string(e.ContentEncoding),
		RoutingKey: string(e.Properties.DeliveryInfo.RoutingKey),
	}, nil
}

// cutBody splits an envelope that begins with a body without escapes, as Kombu's do. For others, body is nil and rest
// is all of it.
func cutBody(b []byte) (body, rest []byte) {
	text, ok := bytes.CutPrefix(b, []byte(`{"body":`))
	if !ok {
		return nil, b
	}
	text = bytes.TrimPrefix(text, []byte(" "))
	if len(text) == 0 || text[0] != '"' {
		return nil, b
	}
	body, rest, ok = bytes.Cut(text[1:], []byte(`"`))
	if !ok || len(rest) == 0 || rest[0] != ',' || bytes.IndexByte(body, '\\') >= 0 {
		return nil, b
	}
	return body, rest
}

// withoutTag returns what is before the delivery tag of an envelope that ends with it, as Kombu's do, and nil for
// others.
func withoutTag(body, rest []byte) []byte {
	at := len(rest) - len(afterTag) - tagBytes
	if body == nil || at < len(beforeTag) || at > maxKey || !bytes.HasSuffix(rest, []byte(afterTag)) ||
		!bytes.HasSuffix(rest[:at], []byte(beforeTag)) {
		return nil
	}
	for _, c := range rest[at : at+tagBytes] {
		if c == '"' || c == '\\' {
			return nil
		}
	}
	return rest[:at]
}
