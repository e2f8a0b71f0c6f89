package command

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	// KindNotification is the kind of commands that tell a receiver of alerts.
	KindNotification = "notification"
	// notifyWithin is after how long a notification is of no use anymore.
	notifyWithin = 24 * time.Hour
)

// notificationPayload is the payload of such a command. How to reach the receiver is not in it.
type notificationPayload struct {
	Receiver     string
	Notification receivers.Notification
}

// Notification returns the command that sends n to a receiver. Those of a receiver are sent in order.
func Notification(receiver string, n receivers.Notification) (history.Command, error) {
	payload, err := json.Marshal(notificationPayload{receiver, n})
	if err != nil {
		return history.Command{}, fmt.Errorf("write notification: %w", err)
	}
	return history.Command{
		Kind: KindNotification, Group: "notification " + receiver, Target: "receiver " + receiver, Summary: "Notify " + receiver + ": " + n.Summary,
		Payload: payload, ExpiresAt: n.At.Add(notifyWithin),
	}, nil
}

// UnsentNotifications returns the notifications that wait to be sent, at most 500.
func UnsentNotifications(ctx context.Context, outbox history.CommandReader) ([]receivers.Notification, error) {
	list, _, err := outbox.Commands(ctx, history.CommandFilter{
		States: []history.CommandState{history.CommandPending, history.CommandInFlight}, Kind: KindNotification, Limit: 500,
	})
	if err != nil {
		return nil, fmt.Errorf("read notifications: %w", err)
	}
	unsent := make([]receivers.Notification, len(list))
	for i := range list {
		var p notificationPayload
		if err := json.Unmarshal(list[i].Payload, &p); err != nil {
			return nil, fmt.Errorf("read notification: %w", err)
		}
		unsent[i] = p.Notification
	}
	return unsent, nil
}

// Receivers returns the receivers that are configured.
func (s *Service) Receivers() []receivers.Receiver { return s.receivers }

// TestReceiver enqueues a notification that says it is a test.
func (s *Service) TestReceiver(ctx context.Context, caller Caller, name string) (Receipt, error) {
	if s.receiver(name) == nil {
		return Receipt{}, &Error{Kind: NotFound, Field: "receiver", Message: fmt.Sprintf("there is no receiver %q", name)}
	}
	d := draft{action: "test receiver", target: "receiver " + name, identity: name}
	return s.submit(ctx, caller, d, func(d *draft) error {
		n := receivers.Notification{ID: rand.Text(), At: s.now().UTC(), Summary: "Umbel: test of receiver " + name, Test: true, Alerts: []receivers.Alert{}}
		c, err := Notification(name, n)
		d.commands = append(d.commands, c)
		return err
	})
}

func (s *Service) receiver(name string) *receivers.Receiver {
	for i := range s.receivers {
		if s.receivers[i].Name == name {
			return &s.receivers[i]
		}
	}
	return nil
}

// notify sends a notification. The broker has no part in it, so that it neither waits for the broker nor holds up others.
func (s *Service) notify(ctx context.Context, p notificationPayload) (relay.Sent, error) {
	r := s.receiver(p.Receiver)
	if r == nil {
		return relay.Sent{}, relay.Elsewhere(fmt.Errorf("%w: no receiver has the name %q anymore", relay.ErrPermanent, p.Receiver))
	}
	err := r.Send(ctx, p.Notification)
	switch {
	case errors.Is(err, receivers.ErrPermanent):
		return relay.Sent{}, relay.Elsewhere(fmt.Errorf("%w: %w", relay.ErrPermanent, err))
	case err != nil:
		return relay.Sent{}, relay.Elsewhere(err)
	}
	return relay.Sent{Elsewhere: true}, nil
}
