package ingest

// HoldAt lets a monitor that does not run yet receive no more when so many bytes of journal wait to be written.
func (in *Ingester) HoldAt(bytes int) { in.maxWaiting = bytes }

// RestoreFirst lets a monitor that does not run yet receive once so many finished tasks are loaded.
func (in *Ingester) RestoreFirst(tasks int) { in.restoreFirst = tasks }
