package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/web/live"
)

// message is anything that a server sends.
type message struct {
	V       int
	Topic   string
	Epoch   string
	Seq     uint64
	Version uint64
	Reset   bool
	Page    string
	Ops     []struct {
		Op, ID, HTML string
		Order        []string
		Rows         map[string]string
	}
	Error string
	Late  *bool
	Now   int64
}

// model is what a client has made of the frames of one topic.
type model struct {
	epoch   string
	seq     uint64
	version uint64
	regions map[string]string
	lists   map[string][]live.Fragment
	resets  int
	frames  int
}

// apply takes a frame. The error says that the protocol was broken.
func (m *model) apply(f message) error {
	m.frames++
	if f.Reset {
		m.resets++
		*m = model{regions: map[string]string{}, lists: map[string][]live.Fragment{}, resets: m.resets, frames: m.frames}
	} else if f.Page == "" && (f.Epoch != m.epoch || f.Seq != m.seq+1) {
		return fmt.Errorf("frame %s/%d after %s/%d", f.Epoch, f.Seq, m.epoch, m.seq)
	}
	m.epoch, m.seq, m.version = f.Epoch, f.Seq, f.Version
	for _, o := range f.Ops {
		switch o.Op {
		case "replace":
			m.regions[o.ID] = o.HTML
		case "list":
			if err := m.list(o.ID, o.Order, o.Rows); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown op %q", o.Op)
		}
	}
	return nil
}

func (m *model) list(id string, order []string, rows map[string]string) error {
	known := map[string]string{}
	for _, r := range m.lists[id] {
		known[r.ID] = r.HTML
	}
	if order == nil {
		for _, r := range m.lists[id] {
			order = append(order, r.ID)
		}
	}
	list := []live.Fragment{}
	for _, row := range order {
		html, ok := rows[row]
		if !ok {
			html, ok = known[row]
		}
		if !ok {
			return fmt.Errorf("row %s of %s has no HTML", row, id)
		}
		list = append(list, live.Fragment{ID: row, HTML: html})
	}
	for row := range rows {
		if !slices.Contains(order, row) {
			return fmt.Errorf("row %s of %s is in no order", row, id)
		}
	}
	m.lists[id] = list
	return nil
}

// equal reports whether the model shows s.
func (m *model) equal(s live.Snapshot) bool {
	if len(m.regions) != len(s.Regions) || len(m.lists) != len(s.Lists) {
		return false
	}
	for _, r := range s.Regions {
		if m.regions[r.ID] != r.HTML {
			return false
		}
	}
	for _, l := range s.Lists {
		if !slices.Equal(m.lists[l.ID], l.Rows) {
			return false
		}
	}
	return true
}

// client is one socket with the model of one topic, which survives reconnects.
type client struct {
	t     testing.TB
	conn  *websocket.Conn
	topic string
	page  string // that the model is made from, empty for none
	model model
}

// subscribe asks for the client's topic behind what it has.
func (c *client) subscribe(ctx context.Context) {
	c.t.Helper()
	c.send(ctx, map[string]any{"op": "sub", "topic": c.topic, "epoch": c.model.epoch, "seq": c.model.seq, "page": c.page})
}

func (c *client) send(ctx context.Context, v any) {
	c.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.conn.Write(ctx, websocket.MessageText, b); err != nil {
		c.t.Errorf("write to server: %v", err)
	}
}

// read returns the next message, having applied it if it is a frame of the client's topic.
func (c *client) read(ctx context.Context) (message, error) {
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		return message{}, err
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("message %.200s: %w", b, err)
	}
	if m.Topic == c.topic && m.Error == "" && m.Late == nil {
		return m, c.model.apply(m)
	}
	return m, nil
}

// frame reads up to the next frame of any topic.
func (c *client) frame(ctx context.Context) message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		m, err := c.read(ctx)
		if err != nil {
			c.t.Fatalf("read frame: %v", err)
		}
		if m.Topic != "" && m.Late == nil {
			return m
		}
	}
}
