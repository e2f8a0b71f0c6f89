package celery

import (
	"bytes"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	maxKnown  = 4096 // kinds of envelopes remembered
	maxKind   = 1024 // bytes of one
	tagBytes  = 36   // of the UUID that is the delivery tag
	beforeTag = `"delivery_tag": "`
	afterTag  = `"}}`
)

// EnvelopeParser parses the envelopes of events. Everything around the body is the same in all events of one type
// from one sender, except the delivery tag at the end, so it is parsed once and remembered. The zero value is
// ready to use. It is not safe for concurrent use.
type EnvelopeParser struct{ known map[string]envelopeKind }

// envelopeKind is the content of an envelope without its body and delivery tag.
type envelopeKind struct {
	message      broker.Message
	headers      string // raw
	bodyEncoding string
}

// Parse returns the message in an envelope. It does not keep b.
func (o *EnvelopeParser) Parse(b []byte) (broker.Message, error) {
	coded, rest := cutBody(b)
	like := withoutTag(coded, rest)
	k, ok := o.known[string(like)]
	if !ok {
		r := envelopeReader{scanner: scanner{text: string(rest)}, cut: coded != nil}
		if err := r.read(); err != nil {
			return broker.Message{}, err
		}
		if r.found { // the last one counts
			coded = []byte(r.body)
		}
		k = envelopeKind{
			message: broker.Message{
				ContentType: r.envelope.ContentType, ContentEncoding: r.envelope.ContentEncoding,
				RoutingKey: r.envelope.RoutingKey,
			},
			headers: r.headers, bodyEncoding: r.bodyEncoding,
		}
		if like != nil && !r.found {
			o.remember(like, k)
		}
	}
	return k.open(coded)
}

// remember stores the content that envelopes of a kind share.
func (o *EnvelopeParser) remember(like []byte, k envelopeKind) {
	if o.known == nil || len(o.known) >= maxKnown {
		o.known = make(map[string]envelopeKind)
	}
	o.known[string(like)] = k
}

// open adds the body.
func (k envelopeKind) open(coded []byte) (broker.Message, error) {
	body, err := decodeBody(k.bodyEncoding, coded)
	if err != nil {
		return broker.Message{}, err
	}
	m := k.message
	m.Body = body
	if !strings.Contains(k.headers, `"`+headerCompression+`"`) {
		return m, nil
	}
	headers, err := parseHeaders(k.headers)
	if err != nil {
		return broker.Message{}, err
	}
	p, err := Decompress(broker.Publishing{Headers: headers, Body: body})
	if err != nil {
		return broker.Message{}, err
	}
	m.Body = p.Body
	return m, nil
}

// cutBody takes the body out of an envelope that begins with it, as Kombu's do, and with nothing to unescape in it.
// rest is the envelope without it. coded is nil if it stands elsewhere, and rest is all of it.
func cutBody(b []byte) (coded, rest []byte) {
	const head = `{"body": "`
	if !bytes.HasPrefix(b, []byte(head)) {
		return nil, b
	}
	n := bytes.IndexByte(b[len(head):], '"')
	if n < 0 {
		return nil, b
	}
	coded, rest = b[len(head):len(head)+n], b[len(head)+n+1:]
	if len(rest) == 0 || rest[0] != ',' || bytes.IndexByte(coded, '\\') >= 0 {
		return nil, b
	}
	return coded, rest
}

// withoutTag returns what is before the delivery tag of an envelope that ends with it, as Kombu's do, and nil for
// others.
func withoutTag(coded, rest []byte) []byte {
	at := len(rest) - len(afterTag) - tagBytes
	if coded == nil || at < len(beforeTag) || at > maxKind || !bytes.HasSuffix(rest, []byte(afterTag)) ||
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
