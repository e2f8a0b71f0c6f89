//go:build unix

package database

import "golang.org/x/sys/unix"

// writable reports whether the process may write to a file. It does not open it: closing a file ends all locks that the
// process has on it, those of SQLite too.
func writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
