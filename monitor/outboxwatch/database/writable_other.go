//go:build !unix

package database

import "os"

// writable reports whether a file is not read-only.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
