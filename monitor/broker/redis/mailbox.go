package redis

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// mailbox is the list that workers push replies to. Beside it lives a key that expires, so that the lists of processes
// that were killed can be distinguished from those in use.
type mailbox struct {
	keys keys
	id   string
}

const (
	mailboxPrefix = "umbel-"
	replyWait     = 5 * time.Second
	leaseTime     = 2 * time.Minute
	maxSwept      = 1000
)

func newMailbox(k keys) mailbox {
	return mailbox{keys: k, id: mailboxPrefix + strings.ToLower(rand.Text())}
}

// queue is the mailbox's name, as bindings have it.
func (m mailbox) queue() string { return m.id + ".reply." + m.keys.control }

func (m mailbox) list() string { return m.keys.prefix + m.queue() }

func (m mailbox) lease() string { return m.list() + ".lease" }

// binding is the set that workers look the mailbox up in.
func (m mailbox) binding() string { return m.keys.binding("reply." + m.keys.control) }

// bind makes the lease and the binding, in this order, or renews them. A full Redis refuses to, but still delivers to
// those that it has.
func (m mailbox) bind(ctx context.Context, client redis.Cmdable) error {
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, m.lease(), "", leaseTime)
		p.SAdd(ctx, m.binding(), m.keys.member(m.id, m.queue()))
		return nil
	})
	if code(err) == "OOM" {
		return nil
	}
	return err
}

// next waits for a reply and returns the envelope, or redis.Nil if none has come for a while. It renews the lease and
// the binding, which somebody may have removed.
func (m mailbox) next(ctx context.Context, client redis.Cmdable) (string, error) {
	if err := m.bind(ctx, client); err != nil {
		return "", err
	}
	found, err := client.BRPop(ctx, replyWait, m.list()).Result()
	if err != nil {
		return "", err
	}
	return found[1], nil
}

func (m mailbox) remove(ctx context.Context, client redis.Cmdable) {
	_, _ = client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SRem(ctx, m.binding(), m.keys.member(m.id, m.queue()))
		p.Del(ctx, m.list(), m.lease())
		return nil
	})
}

// sweep removes mailboxes that nobody has renewed for a while. That it fails does not matter: the next control connection tries
// again.
func (m mailbox) sweep(ctx context.Context, client redis.Cmdable) {
	members, _, err := client.SScan(ctx, m.binding(), 0, glob(mailboxPrefix)+"*", maxSwept).Result()
	if err != nil {
		return
	}
	for _, member := range members {
		id, _, _ := strings.Cut(member, m.keys.separator)
		other := mailbox{m.keys, id}
		if member != m.keys.member(id, other.queue()) {
			continue // not one of ours
		}
		if n, err := client.Exists(ctx, other.lease()).Result(); err != nil || n > 0 {
			continue
		}
		other.remove(ctx, client)
	}
}
