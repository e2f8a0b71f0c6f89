package tables

import (
	"database/sql"
	"time"
)

// ClosePool closes a pool and waits until all its connections are returned.
func ClosePool(db *sql.DB) error {
	err := db.Close()
	if db.Stats().InUse == 0 {
		return err
	}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for db.Stats().InUse > 0 {
		<-again.C
	}
	return err
}
