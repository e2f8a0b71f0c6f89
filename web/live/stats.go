package live

// Stats count what a Hub does now and has done since the start.
type Stats struct {
	Sockets, Topics int    // open now
	Frames, Bytes   uint64 // written to sockets, compressed
}

// Stats returns the present counts.
func (h *Hub) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Stats{Sockets: h.sockets, Topics: len(h.topics), Frames: h.frames.Load(), Bytes: h.bytes.Load()}
}
