package web

import (
	"bytes"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"

	"github.com/umbelhq/umbel/internal/prometheus"
)

// clockTicks is how many units of CPU time in /proc/self/stat make a second: USER_HZ, which is 100 on all of Linux.
const clockTicks = 100

// otlp writes what became of spans for OpenTelemetry.
func (s *scrape) otlp() {
	if s.spans == nil {
		return
	}
	n := s.spans()
	s.Family(prometheus.Counter, "umbel_otlp_spans_total", "Spans by outcome: sent, dropped since too many waited, rejected by the collector.")
	s.Add(float64(n.Sent), "outcome", "sent")
	s.Add(float64(n.Dropped), "outcome", "dropped")
	s.Add(float64(n.Rejected), "outcome", "rejected")
	s.gauge("umbel_otlp_waiting_spans", "Spans that wait to be sent.", float64(n.Waiting))
}

// process writes what process_ and go_ families are usual of a Go program, as far as the system tells.
func (s *scrape) process() {
	s.Family(prometheus.Gauge, "umbel_build_info", "1, with the version as a label.")
	s.Add(1, "version", s.version)
	s.Family(prometheus.Gauge, "go_info", "1, with the version of Go as a label.")
	s.Add(1, "version", runtime.Version())
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	s.gauge("go_goroutines", "Goroutines.", float64(runtime.NumGoroutine()))
	s.gauge("go_memstats_alloc_bytes", "Memory of live and not yet collected objects.", float64(samples[0].Value.Uint64()))
	s.count("go_gc_cycles_total", "Garbage collections.", float64(samples[1].Value.Uint64()))
	s.gauge("process_start_time_seconds", "When the process began.", float64(started.UnixMicro())/1e6)
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		s.linux(stat)
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.gauge("process_open_fds", "Open file descriptors.", float64(len(files)))
	}
}

// linux writes what /proc/self/stat tells. Its fields are numbered from the state, which follows the command in parentheses.
func (s *scrape) linux(stat []byte) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 22 {
		return
	}
	number := func(i int) float64 {
		n, _ := strconv.ParseFloat(string(fields[i]), 64)
		return n
	}
	s.count("process_cpu_seconds_total", "CPU time of the process.", (number(11)+number(12))/clockTicks)
	s.gauge("process_virtual_memory_bytes", "Virtual memory of the process.", number(20))
	s.gauge("process_resident_memory_bytes", "Resident memory of the process.", number(21)*float64(os.Getpagesize()))
}
