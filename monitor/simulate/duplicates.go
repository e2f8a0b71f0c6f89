package simulate

import (
	"fmt"
	"time"
)

// charges is a task without a lock: each call of it charges a card.
const charges = "payments.charge"

func chargeKind() kind {
	return kind{
		name: charges, queue: "billing", median: 900 * time.Millisecond, sigma: 0.7,
		call: func(d rng) (string, string) {
			amount := appendFloat(nil, float64(d.upTo(400, 39_000))/100)
			return "()", fmt.Sprintf("{'order_id': %d, 'amount': %s, 'currency': '%s'}", d.upTo(10_000, 99_999), amount, pick(d, []string{"EUR", "GBP"}))
		},
		result: func(d rng) string { return fmt.Sprintf("{'charge': 'ch_%x', 'captured': True}", d.Uint64()) },
	}
}

// scheduleCharges plans charges by a client that calls again when it has no answer in time, by a mistake in the shop: a
// task of another id, with the same arguments. The card is charged twice, at once or one after the other.
func (c *Cluster) scheduleCharges() {
	s := time.Duration(max(1, 20/c.opts.Rate) * float64(time.Second)) // at low rates they would be too many
	k := chargeKind()
	c.kinds[k.name] = &k
	from := client{process: c.spawn(c.hosts[0])}
	charge := func(again time.Duration) bool {
		cl := call{kind: &k}
		cl.args, cl.kwargs = k.call(c.rng)
		c.send(from, cl)
		if again > 0 {
			c.after(again, func() { c.send(from, cl) })
		}
		return true
	}
	c.scheduleIncident(2*s, 3*s, 5*s, 9*s, func() bool { return charge(0) })
	c.scheduleIncident(12*s, 20*s, 40*s, 80*s, func() bool { return charge(c.rng.between(250*time.Millisecond, 5*time.Second)) })
}
