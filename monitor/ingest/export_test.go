package ingest

// HoldAt lets a monitor that does not run yet receive no more when so many bytes of journal wait to be written.
func (in *Ingester) HoldAt(bytes int) { in.maxWaiting = bytes }
