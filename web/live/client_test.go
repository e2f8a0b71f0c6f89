package live_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/web/live"
)

// model is what a client has made of the frames of one topic.
type model struct {
	regions map[string]string
	lists   map[string][]live.Fragment
	resets  int
	frames  int
}

// apply takes a frame. The error says that the protocol was broken.
func (m *model) apply(f livetest.Message) error {
	m.frames++
	if f.Reset {
		m.resets++
		m.regions, m.lists = map[string]string{}, map[string][]live.Fragment{}
	}
	for _, o := range f.Ops {
		if o.Order == nil && o.Rows == nil {
			m.regions[o.ID] = o.HTML
		} else if err := m.list(o); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) list(o livetest.Op) error {
	known, order := map[string]string{}, []string{}
	for _, r := range m.lists[o.ID] {
		known[r.ID] = r.HTML
		order = append(order, r.ID)
	}
	if o.Order != nil {
		var err error
		if order, err = o.Reorder(order); err != nil {
			return fmt.Errorf("row of %s: %w", o.ID, err)
		}
	}
	list := []live.Fragment{}
	for _, row := range order {
		html := o.Row(row, known[row])
		if html == "" {
			return fmt.Errorf("row %s of %s has no HTML", row, o.ID)
		}
		list = append(list, live.Fragment{ID: row, HTML: html})
	}
	for row := range o.Rows {
		if !slices.Contains(order, row) {
			return fmt.Errorf("row %s of %s is in no order", row, o.ID)
		}
	}
	m.lists[o.ID] = list
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
	t      testing.TB
	conn   *websocket.Conn
	reader livetest.Reader
	topic  string
	page   string // that the model is made from, empty for none
	model  model
}

// url is where the topic is behind what the client has.
func (c *client) url(server string) string {
	q := url.Values{"topic": {c.topic}, "epoch": {c.reader.Epoch}, "seq": {strconv.FormatUint(c.reader.Seq, 10)}, "page": {c.page}}
	return server + "?" + q.Encode()
}

// read returns the next message, having applied it if it is a frame.
func (c *client) read(ctx context.Context) (livetest.Message, error) {
	m, _, err := c.reader.Read(ctx, c.conn)
	if err == nil && m.Frame {
		err = c.model.apply(m)
	}
	return m, err
}

// frame reads up to the next frame, or the error of the topic.
func (c *client) frame(ctx context.Context) livetest.Message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		m, err := c.read(ctx)
		if err != nil {
			c.t.Fatalf("read frame: %v", err)
		}
		if m.Frame || m.Error != "" {
			return m
		}
	}
}
