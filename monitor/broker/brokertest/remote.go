package brokertest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/broker"
)

// listen attaches a mailbox and returns a channel of what it hears.
func (c controlTest) listen() <-chan broker.Publishing {
	c.Helper()
	heard := make(chan broker.Publishing, 100)
	c.Listen(c.T, func(m broker.Publishing) { heard <- m })
	return heard
}

func (c controlTest) hear(mailbox <-chan broker.Publishing) broker.Publishing {
	c.Helper()
	select {
	case m := <-mailbox:
		return m
	case <-time.After(timeout):
		c.Fatalf("no request within %v", timeout)
		return broker.Publishing{}
	}
}

func request(body string) broker.Publishing {
	return broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8",
		Headers: map[string]any{"clock": int64(7), "expires": 1795248000.5},
		Body:    []byte(body),
	}
}

func reply(ticket, body string) broker.Publishing {
	return broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8",
		Headers: map[string]any{"ticket": ticket, "clock": int64(1) << 40},
		Body:    []byte(body),
	}
}

func (c controlTest) requestReachesAll() {
	l := c.open()
	mailboxes := []<-chan broker.Publishing{c.listen(), c.listen(), c.listen()}
	want := -1
	if c.CountsMailboxes {
		want = len(mailboxes)
	}
	for i := range 10 {
		if got := c.request(l, request(strconv.Itoa(i))); got != want {
			c.Errorf("request %d reached %d mailboxes, want %d", i, got, want)
		}
	}
	for n, mailbox := range mailboxes {
		for i := range 10 {
			if got, want := string(c.hear(mailbox).Body), strconv.Itoa(i); got != want {
				c.Errorf("mailbox %d heard %s, want %s", n, got, want)
			}
		}
	}
}

func (c controlTest) requestReachesNone() {
	want := -1
	if c.CountsMailboxes {
		want = 0
	}
	if got := c.request(c.open(), request("{}")); got != want {
		c.Errorf("request reached %d mailboxes, want %d", got, want)
	}
}

func (c controlTest) requestProperties() {
	l, mailbox := c.open(), c.listen()
	want := request(`{"method":"ping"}`)
	c.request(l, want)
	c.expectSame("request", want, c.hear(mailbox))
}

func (c controlTest) replyOrder() {
	l := c.open()
	to := l.ReplyTo()
	c.Listen(c.T, func(m broker.Publishing) {
		for i := range 20 {
			ctx, cancel := c.soon()
			if err := c.Answer(ctx, to, reply("t"+strconv.Itoa(i), string(m.Body))); err != nil {
				c.Errorf("answer %d: %v", i, err)
			}
			cancel()
		}
	})
	c.request(l, request("{}"))
	for i := range 20 {
		c.expectSame("reply", reply("t"+strconv.Itoa(i), "{}"), c.reply(l))
	}
}

func (c controlTest) replyAddress() {
	one, two := c.open(), c.open()
	if one.ReplyTo() == two.ReplyTo() {
		c.Fatalf("two connections get replies at the same place, %v", one.ReplyTo())
	}
	c.answer(broker.ReplyTo{Exchange: one.ReplyTo().Exchange, RoutingKey: "nobody"}, reply("lost", "{}"))
	c.answer(one.ReplyTo(), reply("one", "{}"))
	c.answer(two.ReplyTo(), reply("two", "{}"))
	if got, want := c.reply(one).Headers["ticket"], "one"; got != want {
		c.Errorf("ticket = %v, want %v", got, want)
	}
	if got, want := c.reply(two).Headers["ticket"], "two"; got != want {
		c.Errorf("ticket = %v, want %v", got, want)
	}
}

func (c controlTest) replyContext() {
	l := c.open()
	for range 3 {
		ctx, cancel := context.WithTimeout(c.Context(), 20*time.Millisecond)
		if _, err := l.ReceiveReply(ctx); !errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("reply with nothing to come: error %v, want %v", err, context.DeadlineExceeded)
		}
		cancel()
	}
	c.answer(l.ReplyTo(), reply("late", "{}"))
	if got, want := c.reply(l).Headers["ticket"], "late"; got != want {
		c.Errorf("ticket = %v, want %v", got, want)
	}
}

// expectSame compares a message with what arrived of it.
func (c controlTest) expectSame(what string, want, got broker.Publishing) {
	c.Helper()
	if !bytes.Equal(got.Body, want.Body) {
		c.Errorf("%s has a body of %d bytes, want the %d that were sent", what, len(got.Body), len(want.Body))
	}
	want.Body, got.Body = nil, nil
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		c.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
