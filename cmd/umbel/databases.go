package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// readURLs sets into to the URLs of a flag, and adds those in files, one in each line, of the flag's sibling that ends in -file.
// After each of them it opens what into names, which connects nowhere yet, and closes it. Its error names the flag that is wrong.
func readURLs[S io.Closer](flag string, urls, files []string, into *[]string, open func() ([]S, error)) error {
	check := func(source string) error {
		list, err := open()
		for _, s := range list {
			_ = s.Close()
		}
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", source, err)}
		}
		return nil
	}
	*into = urls
	if err := check(flag); err != nil {
		return err
	}
	for _, name := range files {
		b, err := os.ReadFile(name) //nolint:gosec // the operator names it
		if err != nil {
			return usageError{fmt.Errorf("%s-file: %w", flag, err)}
		}
		*into = append(*into, strings.Fields(string(b))...)
		if err := check(flag + "-file"); err != nil {
			return err
		}
	}
	return nil
}
