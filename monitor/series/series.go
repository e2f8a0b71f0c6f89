// Package series counts what happens by minute and reads the counts back as series over time that follow a
// query. It keeps only what was not stored yet, draws nothing and reads no wall clock.
package series
