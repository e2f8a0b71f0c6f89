//go:build !race

package idempotency_test

const slowdown = 1
