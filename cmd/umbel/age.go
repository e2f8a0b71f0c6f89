package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// age is a length of time on the command line: 7d, 36h, 1d12h, or 0.
type age time.Duration

// UnmarshalText reads an age.
func (a *age) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q is no length of time: write it as 7d, 36h or 0", text)
	days, rest, whole := strings.Cut(string(text), "d")
	if !whole {
		days, rest = "0", string(text)
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day)-1 {
		return wrong
	}
	var more time.Duration
	if rest != "" || !whole {
		if more, err = time.ParseDuration(rest); err != nil || more < 0 {
			return wrong
		}
	}
	total := time.Duration(n)*day + more
	if total < 0 {
		return wrong
	}
	*a = age(total)
	return nil
}
