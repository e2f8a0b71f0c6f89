package redis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	defaultSeparator   = "\x06\x16"
	defaultVisibility  = time.Hour
	defaultHealthCheck = 15 * time.Second
	defaultDialTimeout = 10 * time.Second
	maxPriority        = 9
)

// NoFanoutPrefix is the FanoutPrefix of applications that set fanout_prefix to False.
const NoFanoutPrefix = "\x00"

// Options of a Broker. URL is required, everything else has Celery's default. Nothing on the wire shows the
// transport options, so they must be the same as in broker_transport_options.
type Options struct {
	// URL is what the workers' broker_url is: redis://user:password@host:6379/0, rediss:// for TLS,
	// redis+socket:///path?virtual_host=0, or sentinel:// lists separated by semicolons. Several URLs of the
	// other kinds are tried in turn. Special characters are percent-encoded. The query may hold Kombu's ssl_
	// names; the rest of it is ignored.
	URL string
	// TLS says how to trust and be trusted by rediss:// and sentinel:// URLs. Its fields win over the URL's query.
	// With sentinel://, it secures the way to the sentinels and to the master.
	TLS broker.TLS
	// MasterName is the transport option master_name, required with sentinel://.
	MasterName string
	// SentinelUsername and SentinelPassword are those of the sentinels themselves.
	SentinelUsername, SentinelPassword string
	// KeyPrefix is global_keyprefix.
	KeyPrefix string
	// FanoutPrefix is fanout_prefix: empty means Kombu's "/{db}."; NoFanoutPrefix means False. As in Python, {{ and }} stand for
	// braces: Kombu before 5.4, behind Sentinel, publishes as if it were "/{{db}}.".
	FanoutPrefix string
	// NoFanoutPatterns is fanout_patterns: false. Events are received either way without it.
	NoFanoutPatterns bool
	// Separator is sep, "\x06\x16" if empty.
	Separator string
	// PrioritySteps is priority_steps, 0 3 6 9 if empty.
	PrioritySteps []int
	// UnackedKey and UnackedIndexKey are unacked_key and unacked_index_key, "unacked" and "unacked_index" if empty.
	UnackedKey, UnackedIndexKey string
	// VisibilityTimeout is visibility_timeout, 1 h if zero.
	VisibilityTimeout time.Duration
	// Exchange and ControlExchange are event_exchange and control_exchange, celeryev and celery if empty.
	Exchange, ControlExchange string
	// HealthCheck is how often an event stream is pinged, 15 s if zero. One that sends nothing for twice as long is lost.
	HealthCheck time.Duration
	// DialTimeout bounds each attempt to connect, 10 s if zero.
	DialTimeout time.Duration
	// Version of the program, shown by CLIENT LIST as part of the connection's name.
	Version string
}

// withDefaults returns o with its zero values replaced, or an error about a value out of bounds.
func (o Options) withDefaults() (Options, error) {
	o.Exchange = cmp.Or(o.Exchange, "celeryev")
	o.ControlExchange = cmp.Or(o.ControlExchange, "celery")
	o.Separator = cmp.Or(o.Separator, defaultSeparator)
	o.UnackedKey = cmp.Or(o.UnackedKey, "unacked")
	o.UnackedIndexKey = cmp.Or(o.UnackedIndexKey, "unacked_index")
	o.VisibilityTimeout = cmp.Or(o.VisibilityTimeout, defaultVisibility)
	o.HealthCheck = cmp.Or(o.HealthCheck, defaultHealthCheck)
	o.DialTimeout = cmp.Or(o.DialTimeout, defaultDialTimeout)
	if len(o.PrioritySteps) == 0 {
		o.PrioritySteps = []int{0, 3, 6, 9}
	}
	o.PrioritySteps = slices.Compact(slices.Sorted(slices.Values(o.PrioritySteps)))
	switch {
	case o.PrioritySteps[0] < 0 || o.PrioritySteps[len(o.PrioritySteps)-1] > maxPriority:
		return o, fmt.Errorf("priority steps %v are outside 0 to %d", o.PrioritySteps, maxPriority)
	case o.PrioritySteps[0] != 0:
		return o, fmt.Errorf("priority steps %v do not begin with 0", o.PrioritySteps)
	case o.VisibilityTimeout < 0:
		return o, fmt.Errorf("visibility timeout %v is negative", o.VisibilityTimeout)
	}
	return o, nil
}

// keys are the names that things have in the database of an endpoint.
type keys struct {
	prefix    string // of every key and channel
	fanout    string // of channels, after prefix
	separator string
	steps     []int
	unacked   string // hash of the messages that workers hold, prefix included
	index     string // sorted set of when they got them, prefix included
	events    string // exchange
	control   string // exchange
	plain     bool   // no routing keys in channels
}

func (o Options) keys(db int) keys {
	fanout := cmp.Or(o.FanoutPrefix, "/{db}.")
	if fanout == NoFanoutPrefix {
		fanout = ""
	}
	return keys{
		prefix:    o.KeyPrefix,
		fanout:    strings.NewReplacer("{{", "{", "}}", "}", "{db}", strconv.Itoa(db)).Replace(fanout),
		separator: o.Separator,
		steps:     o.PrioritySteps,
		unacked:   o.KeyPrefix + o.UnackedKey,
		index:     o.KeyPrefix + o.UnackedIndexKey,
		events:    o.Exchange,
		control:   o.ControlExchange + ".pidbox",
		plain:     o.NoFanoutPatterns,
	}
}

// patterns are what to subscribe to for events. Applications with fanout_patterns off use the channel without more.
func (k keys) patterns() []string {
	channel := glob(k.prefix + k.fanout + k.events)
	if k.plain {
		return []string{channel}
	}
	return []string{channel, channel + "/*"}
}

// event is the channel that events with a routing key are published on.
func (k keys) event(routingKey string) string {
	channel := k.prefix + k.fanout + k.events
	if k.plain {
		return channel
	}
	return channel + "/" + routingKey
}

// pidbox is the channel that workers take commands from.
func (k keys) pidbox() string { return k.prefix + k.fanout + k.control }

// binding is the set of the queues that are bound to an exchange.
func (k keys) binding(exchange string) string { return k.prefix + bindingPrefix + exchange }

const bindingPrefix = "_kombu.binding."

// member is an element of such a set.
func (k keys) member(routingKey, queue string) string {
	return routingKey + k.separator + k.separator + queue
}

// queues are the lists of a queue, one for each priority step.
func (k keys) queues(name string) []string {
	lists := make([]string, len(k.steps))
	for i, step := range k.steps {
		lists[i] = k.prefix + k.list(name, step)
	}
	return lists
}

// list is the name of a queue's list for a step.
func (k keys) list(name string, step int) string {
	if step == 0 {
		return name
	}
	return name + k.separator + strconv.Itoa(step)
}

// queue is the list that a message of a priority goes to: that of the greatest step which is not above it.
func (k keys) queue(name string, priority uint8) string {
	step := 0
	for _, s := range k.steps {
		if s <= int(priority) {
			step = s
		}
	}
	return k.prefix + k.list(name, step)
}

// glob escapes what Redis takes for a pattern.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}
