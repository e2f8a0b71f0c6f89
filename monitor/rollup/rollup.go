// Package rollup counts what happens by minute and reads the counts back as series over time that follow a
// query. It keeps only what was not stored yet and draws nothing.
package rollup
