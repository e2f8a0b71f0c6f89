package clock

// Lane names one sending process. PID is 0 where the hostname says it all (clients) or it is unknown.
type Lane struct {
	Hostname string
	PID      int64
}
