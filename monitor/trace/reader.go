package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
)

// Reader reads a trace. It is not safe for concurrent use.
type Reader struct {
	header  Header
	lines   *bufio.Reader
	decoder celery.Decoder
	number  int // of the line read last
	bytes   int // read so far
	events  int
	newest  int64
	err     error // of Next, once there was one
}

// NewReader reads the header. The error is ErrNotTrace, ErrNewer, ErrCutOff, or that of r.
func NewReader(r io.Reader) (*Reader, error) {
	z, err := gzip.NewReader(r)
	switch {
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrNotTrace
	case err != nil:
		return nil, fmt.Errorf("read trace: %w", err)
	}
	t := &Reader{lines: bufio.NewReaderSize(z, 64<<10)}
	first, err := t.line()
	if errors.Is(err, ErrCutOff) {
		return nil, err
	}
	if err != nil {
		return nil, ErrNotTrace
	}
	h := &t.header
	var version struct {
		N *int `json:"umbel_trace"`
	}
	switch err := json.Unmarshal(first, &version); {
	case err != nil || version.N == nil || *version.N < 1:
		return nil, ErrNotTrace
	case *version.N > Version:
		return nil, ErrNewer
	}
	if err := json.Unmarshal(first, h); err != nil || !usable(h.Until) {
		return nil, ErrNotTrace
	}
	return t, nil
}

// usable reports whether a cluster may have had a time.
func usable(t time.Time) bool { return t.Year() > 2000 && t.Year() < 2100 }

// IsTrace reports whether data begins as a trace does, and not as lines of events do.
func IsTrace(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// Header is that of the trace.
func (r *Reader) Header() Header { return r.header }

// End is the instant as of which the trace is, or, once it was found to be cut off, of its last entry.
func (r *Reader) End() time.Time {
	if errors.Is(r.err, ErrCutOff) && r.newest != 0 {
		return time.UnixMicro(r.newest).UTC()
	}
	return r.header.Until.UTC()
}

// line returns the next line.
func (r *Reader) line() ([]byte, error) {
	r.number++
	var whole []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		whole = append(whole, part...)
		r.bytes += len(part)
		switch {
		case len(whole) > maxLine || r.bytes > MaxBytes:
			return nil, ErrTooLarge
		case err == nil:
			return whole, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, ErrCutOff
		default:
			return nil, fmt.Errorf("line %d %w", r.number, errLine)
		}
	}
}

// Next returns the next entry, io.EOF after the last one. The error is ErrCutOff, ErrTooLarge, or says which line cannot be
// read.
func (r *Reader) Next() (Entry, error) {
	if r.err != nil {
		return Entry{}, r.err
	}
	var e Entry
	e, r.err = r.next()
	return e, r.err
}

func (r *Reader) next() (Entry, error) {
	text, err := r.line()
	if err != nil {
		return Entry{}, err
	}
	e, end, err := decode(&r.decoder, text)
	switch {
	case err != nil:
		return Entry{}, fmt.Errorf("line %d %w", r.number, err)
	case end != nil && end.Events != r.events:
		return Entry{}, fmt.Errorf("has %d events, and its last line counts %d", r.events, end.Events)
	case end != nil:
		return Entry{}, io.EOF
	}
	if e.Event != nil {
		r.events++
	}
	if at := e.At(); !usable(time.UnixMicro(at)) || at > r.header.Until.UnixMicro() || at < r.newest {
		return Entry{}, fmt.Errorf("line %d is out of order", r.number)
	}
	r.newest = e.At()
	return e, nil
}

// ReadAll reads all entries. Those before a cut are returned beside ErrCutOff.
func (r *Reader) ReadAll() (entries []Entry, err error) {
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return slices.Clip(entries), nil
		}
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
}
