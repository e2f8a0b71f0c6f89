package celery

import (
	"bytes"
	"compress/bzip2"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	headerCompression = "compression"
	maxInflated       = 64 << 20 // bytes of a body
)

// Decompress returns p with its body as the serializer wrote it, and without the header that says how it was
// compressed. p itself is not changed. It reads zlib, which Kombu calls application/x-gzip, and bzip2.
func Decompress(p broker.Publishing) (broker.Publishing, error) {
	name, ok := p.Headers[headerCompression]
	if !ok || name == nil || name == "" {
		return p, nil
	}
	var r io.Reader
	switch name {
	case "application/x-gzip":
		z, err := zlib.NewReader(bytes.NewReader(p.Body))
		if err != nil {
			return p, fmt.Errorf("decompress body: %w", err)
		}
		r = z
	case "application/x-bz2":
		r = bzip2.NewReader(bytes.NewReader(p.Body))
	default:
		return p, fmt.Errorf("decompress body: %.100q is not a compression that Umbel knows", name)
	}
	body, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	if err != nil {
		return p, fmt.Errorf("decompress body: %w", err)
	}
	if len(body) > maxInflated {
		return p, errors.New("decompress body: larger than 64 MiB")
	}
	p.Body = body
	p.Headers = maps.Clone(p.Headers)
	delete(p.Headers, headerCompression)
	return p, nil
}
