// Package livetest reads what live sockets send, as docs/live-protocol.md has it. No code outside tests may import it.
package livetest

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/websocket"
)

// Message is anything that a server sends.
type Message struct {
	Frame bool // one of the topic, else what follows Ops
	Epoch string
	Seq   uint64
	Page  string
	Reset bool
	Ops   []Op

	Error string
	Late  *bool
	V     int
	Now   int64
}

// Op changes a region, or a list if Order or Rows are not nil.
type Op struct {
	ID, HTML string
	Order    []any          // ids of new rows, and [index, length] in the order before
	Rows     map[string]any // HTML by id, or that of cells by index
}

// Row returns the HTML of a row in Rows by that before.
func (o Op) Row(id, before string) string {
	switch change := o.Rows[id].(type) {
	case string:
		return change
	case map[string]any:
		parts := strings.Split(before, "<td")
		for i := 1; i < len(parts); i++ {
			if cell, ok := change[strconv.Itoa(i-1)].(string); ok {
				parts[i] = strings.TrimPrefix(cell, "<td")
			}
		}
		return strings.Join(parts, "<td")
	default:
		return before
	}
}

// Reorder returns the ids of all rows of a list by those before.
func (o Op) Reorder(before []string) ([]string, error) {
	ids := []string{}
	for _, part := range o.Order {
		switch part := part.(type) {
		case string:
			ids = append(ids, part)
		case []any:
			from, _ := part[0].(float64)
			n, _ := part[1].(float64)
			if int(from+n) > len(before) {
				return nil, fmt.Errorf("row %v of %d is in the order", part, len(before))
			}
			ids = append(ids, before[int(from):int(from+n)]...)
		}
	}
	return ids, nil
}

// Reader reads the messages of a topic, of one socket after the other. The zero Reader has read nothing.
type Reader struct {
	Epoch string
	Seq   uint64
	tail  []byte
}

// Read returns the next message of a socket and its length in bytes.
func (r *Reader) Read(ctx context.Context, conn *websocket.Conn) (m Message, n int, err error) {
	kind, b, err := conn.Read(ctx)
	switch {
	case err != nil:
		return m, 0, err
	case kind == websocket.MessageBinary:
		m, err = r.frame(b)
	default:
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return m, len(b), fmt.Errorf("read message: %w", err)
	}
	return m, len(b), nil
}

func (r *Reader) frame(b []byte) (Message, error) {
	starts := b[0] == 1
	if starts {
		r.tail = nil
	}
	text, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(b[1:]), r.tail))
	if err != nil {
		return Message{}, err
	}
	m := Message{Frame: true, Epoch: r.Epoch, Seq: r.Seq + 1}
	if starts {
		begin := bytes.LastIndexByte(text, '\n') + 1
		r.tail, text = text[:begin], text[begin:]
	} else {
		all := slices.Concat(r.tail, text)
		r.tail = all[max(0, len(all)-32<<10):]
	}
	err = json.Unmarshal(text, &m)
	r.Epoch, r.Seq = m.Epoch, m.Seq
	return m, err
}
