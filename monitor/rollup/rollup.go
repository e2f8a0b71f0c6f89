// Package rollup counts events by minute and reads the counts as time series that follow a query. It holds only counts that
// are not stored yet.
package rollup
