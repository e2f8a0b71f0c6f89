package dashboard

import (
	"fmt"
	"io"
	"slices"
)

// openSources returns sources after those given: one of each URL. What it opens connects nowhere yet. check says whether they
// can be used together.
func openSources[S io.Closer](what string, given []S, urls []string, open func(url string) (S, error), check func([]S) error) ([]S, error) {
	list := slices.Clone(given)
	for _, url := range urls {
		s, err := open(url)
		if err == nil {
			list = append(list, s)
			err = check(list)
		}
		if err != nil {
			for _, s := range list {
				_ = s.Close()
			}
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return list, nil
}
