package state

import "strings"

// Host returns the host in the name of a node, such as celery@host: what follows @, empty if there is none.
func Host(node string) string {
	_, host, _ := strings.Cut(node, "@")
	return host
}
