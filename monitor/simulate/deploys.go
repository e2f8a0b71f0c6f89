package simulate

import "time"

// Deploys are two releases of the shop: the first breaks a task, the second mends it.
type Deploys struct {
	Broken, Mended time.Duration // since the start; both 0 for none
}

// brokenChance is how likely the broken release fails a task.
const brokenChance = .3

// brokenTask is what the broken release breaks.
const brokenTask = "orders.import"

// broken returns what the broken release does to x, nil if nothing.
func (c *Cluster) broken(x *execution) *fault {
	since := time.Duration(c.now - c.opts.Start.UnixNano())
	d := c.opts.Deploys
	if d == (Deploys{}) || since < d.Broken || since >= d.Mended || x.m.task.kind.name != brokenTask || x.orphan || c.rng.Float64() >= brokenChance {
		return nil
	}
	return &fault{how: raises, exception: "KeyError('vat_rate')", traceback: raised("KeyError: 'vat_rate'",
		frame{app + "orders/importer.py", 88, "import_orders", "total += row['net'] * (1 + row['vat_rate'])", "row['vat_rate']"})}
}
