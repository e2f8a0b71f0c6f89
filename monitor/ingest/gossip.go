package ingest

import "time"

// gossipEvery is how often the clocks of workers are compared with each other.
const gossipEvery = 5 * time.Second

// listen compares which workers hear each other. mu is held.
func (in *Ingester) listen(now time.Time) {
	if since := now.Sub(in.heardAt); since >= 0 && since < gossipEvery {
		return
	}
	in.heard, in.heardAt = in.gossip.Report(now.UnixMicro()), now
}
