package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"sync"

	"modernc.org/sqlite"
)

// memory is a migrated, empty database in memory, which others are copied from: that takes a tenth of the time of migrating each.
var memory struct { //nolint:gochecknoglobals // made once
	sync.Mutex
	empty driver.Conn // nil until the first is opened
}

// backer is what a connection of the driver can do.
type backer interface {
	NewBackup(to string) (*sqlite.Backup, error)
}

// openMemory opens a store with a single connection, since each connection would have a database of its own.
func (d *DB) openMemory(ctx context.Context) error {
	memory.Lock()
	defer memory.Unlock()
	if memory.empty == nil {
		if err := makeEmpty(ctx); err != nil {
			return err
		}
	}
	conn, err := copyOf(memory.empty)
	if err != nil {
		return err
	}
	d.write = pool(sql.OpenDB(opened{conn}), 1)
	d.read = d.write
	return nil
}

// makeEmpty makes the database that others are copied from. No pool holds it, since a pool has a goroutine.
func makeEmpty(ctx context.Context) error {
	db, err := sql.Open("sqlite", Memory)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	if err := migrate(ctx, pool(db, 1), false); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns it to its pool
	return conn.Raw(func(c any) (err error) {
		memory.empty, err = copyOf(c)
		return err
	})
}

// copyOf copies the database of a connection to one in memory.
func copyOf(conn any) (driver.Conn, error) {
	b, err := conn.(backer).NewBackup(Memory + "?" + url.Values{"_txlock": {"immediate"}}.Encode())
	if err != nil {
		return nil, err
	}
	if _, err := b.Step(-1); err != nil {
		_ = b.Finish()
		return nil, err
	}
	return b.Commit()
}

// opened connects to a database that is open.
type opened struct{ conn driver.Conn }

// Connect returns the connection.
func (o opened) Connect(context.Context) (driver.Conn, error) { return o.conn, nil }

// Driver returns SQLite's.
func (o opened) Driver() driver.Driver { return &sqlite.Driver{} }
