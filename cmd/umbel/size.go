package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes on the command line: 512MiB, 2GiB, or a plain number.
type size int64

// UnmarshalText reads a size.
func (s *size) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, factor = rest, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is no size: write it as 512MiB or 2GiB", text)
	}
	*s = size(n * factor)
	return nil
}
