package postgres

// SearchSlowly has all searches look at the list row by row, a few at a time.
func (d *DB) SearchSlowly() {
	d.alwaysSlow = true
	d.limits.window, d.limits.chunk, d.limits.examined = 7, 5, 11
	d.limits.looked = 1 << 30
}

// VacuumAfter has the space of so many deleted rows of active tasks taken back.
func (d *DB) VacuumAfter(rows int) { d.limits.dead = rows }

// RefuseServer returns why a version of PostgreSQL is refused.
var RefuseServer = refuseServer
