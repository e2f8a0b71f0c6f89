package celery

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/broker"
)

// Serializer is what Kombu calls a way to write a message: task_serializer, event_serializer.
type Serializer string

// The serializers that Umbel reads and writes. The empty one is JSON.
const (
	JSON        Serializer = "json"
	MessagePack Serializer = "msgpack"
	YAML        Serializer = "yaml"
)

// Serializers returns them all.
func Serializers() []Serializer { return []Serializer{JSON, MessagePack, YAML} }

// Content types and encodings as Kombu names them.
const (
	mimeJSON       = "application/json"
	mimeMsgpack    = "application/x-msgpack"
	mimeYAML       = "application/x-yaml"
	mimePickle     = "application/x-python-serialize"
	utf8Coding     = "utf-8"
	msgpackCoding  = "binary"
	pickleSettings = "set accept_content and task_serializer to json"
)

// SerializerOf returns the serializer of a content type, false for one that Umbel does not read. No type is JSON.
func SerializerOf(contentType string) (Serializer, bool) {
	switch mimeType(contentType) {
	case "", mimeJSON:
		return JSON, true
	case mimeMsgpack:
		return MessagePack, true
	case mimeYAML:
		return YAML, true
	}
	return "", false
}

// label sets the content type and encoding of a message.
func (s Serializer) label(p *broker.Publishing) {
	switch s {
	case MessagePack:
		p.ContentType, p.ContentEncoding = mimeMsgpack, msgpackCoding
	case YAML:
		p.ContentType, p.ContentEncoding = mimeYAML, utf8Coding
	case JSON:
		fallthrough
	default:
		p.ContentType, p.ContentEncoding = mimeJSON, utf8Coding
	}
}

// fidelity is what toJSON does with values that JSON does not have.
type fidelity bool

const (
	readable fidelity = false // become text or null
	lossless fidelity = true  // become what Kombu writes for them in JSON, or an error
)

// toJSON returns a body as JSON in the manner of Python: bare NaN and infinities are possible.
func (s Serializer) toJSON(body []byte, f fidelity) ([]byte, error) {
	switch s {
	case MessagePack:
		return fromMsgpack(body, f)
	case YAML:
		return fromYAML(body, f)
	case JSON:
	}
	return body, nil
}

// write appends a value as the serializer writes it. JSON is not written here. Its error is a *MessageError.
func (s Serializer) write(dst []byte, n node, path string) ([]byte, error) {
	at := &place{name: path}
	if s == MessagePack {
		return appendMsgpack(dst, n, at)
	}
	return appendYAML(dst, n, at)
}

// encode returns JSON as the serializer writes it.
func (s Serializer) encode(raw json.RawMessage, path string) ([]byte, error) {
	if s == JSON || s == "" {
		return raw, nil
	}
	n, err := parseNode(raw, path)
	if err != nil {
		return nil, err
	}
	return s.write(nil, n, path)
}

// check returns a *MessageError for a serializer that does not exist.
func (s Serializer) check() error {
	switch s {
	case "", JSON, MessagePack, YAML:
		return nil
	}
	return &MessageError{Path: "serializer", Message: "must be json, msgpack or yaml"}
}

// unreadable says why a task's body cannot be read.
func unreadable(contentType string) error {
	switch kind := mimeType(contentType); kind {
	case mimePickle:
		return errors.New("its body is a pickle")
	case "":
		return errors.New("its body has no content type")
	default:
		return fmt.Errorf("its body is %.100s: not JSON, MessagePack or YAML", kind)
	}
}
