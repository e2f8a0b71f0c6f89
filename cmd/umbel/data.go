package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// dataFlags say where the history is.
type dataFlags struct {
	DataDir string `env:"UMBEL_DATA_DIR" placeholder:"DIR" help:"Where the history is kept. Default: umbel in the user's data directory."`
}

// dir returns the directory of the history. Its error is a usageError.
func (f *dataFlags) dir() (string, error) {
	if f.DataDir != "" {
		return f.DataDir, nil
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) { // a relative one is to be ignored (basedir-spec)
		return filepath.Join(base, "umbel"), nil
	}
	base, err := "", error(nil)
	switch runtime.GOOS {
	case "windows", "darwin":
		base, err = os.UserConfigDir() // %AppData% and ~/Library/Application Support hold data too
	default:
		base, err = os.UserHomeDir()
		base = filepath.Join(base, ".local", "share")
	}
	if err != nil {
		return "", usageError{errors.New("there is no user's data directory to keep the history in: name one with --data-dir")}
	}
	return filepath.Join(base, "umbel"), nil
}
