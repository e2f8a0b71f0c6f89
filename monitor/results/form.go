package results

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/umbelhq/umbel/internal/truncate"
)

// foreign says why bytes that are neither JSON nor a pickle are not decoded, by what a serializer of Celery's writes of a
// record or a value. mime is its content type, empty if that is not stored.
func undecoded(b []byte, mime string) string {
	kind := "in a form that is not known"
	switch {
	case strings.Contains(mime, "yaml"), mime == "" && yamlRecord(b):
		kind = "as yaml"
	case strings.Contains(mime, "msgpack"), mime == "" && msgpackRecord(b):
		kind = "as msgpack"
	case mime != "" && mime != "application/json":
		kind = "as " + truncate.Bytes(mime, 64)
	}
	return "stored " + kind + ", not decoded"
}

// yamlRecord reports whether b is a record as YAML: each key on a line of its own.
func yamlRecord(b []byte) bool {
	return utf8.Valid(b) && (bytes.HasPrefix(b, []byte("status: ")) || bytes.Contains(b, []byte("\nstatus: ")))
}

// msgpackRecord reports whether b is a record as MessagePack: a map with the key status.
func msgpackRecord(b []byte) bool {
	return len(b) > 0 && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf) && bytes.Contains(b, []byte("\xa6status"))
}

// statusOf is the status in a record of another serializer, empty if it is not certain.
func statusOf(b []byte) string {
	if !yamlRecord(b) {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		status, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "status: ")
		if ok && status != "" && strings.Trim(status, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
			return status
		}
	}
	return ""
}
