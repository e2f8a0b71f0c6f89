//go:build race

package idempotency_test

// slowdown is what the race detector costs.
const slowdown = 20
