package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// captureCmd prints raw event bodies.
type captureCmd struct {
	brokerFlags
	Limit int `env:"UMBEL_LIMIT" placeholder:"N" help:"Stop after this many messages. Default: when interrupted."`
}

// Run prints until ctx ends, the limit is reached, or the broker is lost.
func (c *captureCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	broker, err := dashboard.Broker(o)
	if err != nil {
		return err
	}
	session, err := broker.Subscribe(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	log.Info("capturing events until interrupted", "url", broker.String())
	if err := greet(ctx, broker); err != nil {
		log.Warn("control command not sent", "method", "heartbeat", "error", err)
	}
	w := bufio.NewWriter(s.out)
	for n := 0; c.Limit <= 0 || n < c.Limit; {
		batch, err := session.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, m := range batch {
			n += c.write(w, m, log)
			if c.Limit > 0 && n == c.Limit {
				break
			}
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		if err := session.Ack(batch[len(batch)-1].Tag); err != nil {
			return fmt.Errorf("acknowledge events: %w", err)
		}
	}
	return nil
}

// greet asks workers to make themselves known.
func greet(ctx context.Context, broker broker.Broker) error {
	m, err := celery.Request{Method: "heartbeat"}.Publishing()
	if err != nil {
		return err
	}
	line, err := broker.OpenControl(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	_, err = line.Request(ctx, m)
	return err
}

// write prints one body on one line, and returns how many it wrote: what is no JSON in UTF-8 is left out.
func (c *captureCmd) write(w *bufio.Writer, m broker.Message, log *slog.Logger) int {
	body, ok := new(celery.Decoder).JSON(m.ContentType, m.Body)
	if !ok {
		log.Warn("message left out: not JSON, MessagePack or YAML", "content_type", m.ContentType, "bytes", len(m.Body))
		return 0
	}
	if bytes.ContainsAny(body, "\r\n") { // pretty-printed by a foreign publisher
		var line bytes.Buffer
		if err := json.Compact(&line, body); err != nil {
			log.Warn("message left out: no JSON on one line", "content_type", m.ContentType, "bytes", len(body))
			return 0
		}
		body = line.Bytes()
	}
	_, _ = w.Write(body) // an error comes back from Flush
	_ = w.WriteByte('\n')
	return 1
}
