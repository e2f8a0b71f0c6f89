package simulate

import (
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/broker"
)

// host is a machine: what its processes share.
type host struct {
	name      string
	skew      int64  // its wall clock is ahead by that many ns
	utcoffset string // hours west of UTC, as JSON: Celery 5.7 sends a float, older ones an integer
	version   string // of Celery
	legacy    bool   // older than 5.7
	pid       int64  // of its newest process
	load      [3]float64
}

// process is one process on a host, with its own Lamport clock and its own connection.
type process struct {
	host    *host
	pid     int64
	clock   int64
	arrived int64 // when its newest message reaches the broker: a connection keeps its order
}

func (c *Cluster) spawn(h *host) *process {
	h.pid += int64(c.rng.upTo(1, 3))
	return &process{host: h, pid: h.pid}
}

// node is the node name of a process that publishes as a client.
func (p *process) node() string { return "gen" + strconv.FormatInt(p.pid, 10) + "@" + p.host.name }

// wall is what the wall clock of h shows, ns since 1970 UTC.
func (c *Cluster) wall(h *host) int64 { return c.now + h.skew }

// publish sends a message over p's connection.
func (c *Cluster) publish(p *process, routingKey string, body []byte) {
	p.arrived = max(p.arrived+int64(20*time.Microsecond), c.now+int64(c.rng.latency()))
	c.push(entry{at: p.arrived, out: &Delivery{
		At: time.Unix(0, p.arrived).UTC(),
		Message: broker.Message{
			Body: body, ContentType: "application/json", ContentEncoding: "utf-8", RoutingKey: routingKey,
		},
	}})
}

// redeliver repeats the newest n deliveries, as a broker does after a consumer was lost.
func (c *Cluster) redeliver(n int) {
	n = min(n, c.delivered, len(c.recent))
	for i := range n {
		d := c.recent[(c.delivered-n+i)%len(c.recent)]
		d.Body = slices.Clone(d.Body)
		d.Redelivered = true
		at := c.now + int64(i+1)*int64(50*time.Microsecond)
		d.At = time.Unix(0, at).UTC()
		c.push(entry{at: at, out: &d})
	}
}

// event is the body of one event in the making, spelled as Python's json.dumps spells it.
type event []byte

// newEvent starts an event of p under a node name, and ticks p's clock.
func newEvent(p *process, node string) event {
	p.clock++
	e := append(make(event, 0, 512), `{"hostname": "`...)
	e = append(e, node...)
	e = append(e, `", "utcoffset": `...)
	e = append(e, p.host.utcoffset...)
	return e.num("pid", p.pid).num("clock", p.clock)
}

// end adds the timestamp and the type.
func (e event) end(wall int64, kind string) []byte {
	return append(e.float("timestamp", float64(wall)/1e9).str("type", kind), '}')
}

func (e event) key(key string) event {
	e = append(e, `, "`...)
	e = append(e, key...)
	return append(e, `": `...)
}

func (e event) num(key string, n int64) event { return strconv.AppendInt(e.key(key), n, 10) }

func (e event) float(key string, f float64) event { return appendFloat(e.key(key), f) }

// raw adds a value that is JSON already.
func (e event) raw(key, value string) event { return append(e.key(key), value...) }

func (e event) str(key, value string) event { return appendString(e.key(key), value) }

// opt adds a string, null if it is empty.
func (e event) opt(key, value string) event {
	if value == "" {
		return e.raw(key, "null")
	}
	return e.str(key, value)
}

// date adds a point in time in ISO 8601, null if it is 0.
func (e event) date(key string, ns int64) event {
	if ns == 0 {
		return e.raw(key, "null")
	}
	return e.str(key, time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000+00:00"))
}

// appendFloat spells f as Python does: the shortest digits that read back as f, always with a point.
func appendFloat(b []byte, f float64) []byte {
	if f == math.Trunc(f) {
		return strconv.AppendFloat(b, f, 'f', 1, 64)
	}
	if math.Abs(f) < 1e-4 {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// appendString quotes s as json.dumps does: all that is not ASCII as \uXXXX.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		ch := s[i]
		if ch >= ' ' && ch < utf8.RuneSelf && ch != '"' && ch != '\\' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		b = append(b, s[start:i]...)
		b = appendEscape(b, r)
		i += size
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	if r > 0xffff {
		r -= 0x10000
		return appendUnit(appendUnit(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, u rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
}
