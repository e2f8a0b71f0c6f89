package query

import "strings"

// fieldNames returns the names of all fields, with their other names.
func fieldNames() []string {
	var names []string
	for _, f := range Fields() {
		names = append(append(names, f.String()), fields[f].aliases...)
	}
	return names
}

// maxName is the longest word that may be meant to be a name.
const maxName = 64

// Nearest returns the name that s is most likely meant to be, empty if none comes near.
func Nearest(s string, names []string) string {
	if len(s) > maxName {
		return ""
	}
	best, least := "", max(1, len(s)/3)+1
	for _, name := range names {
		d := distance(s, name)
		if len(s) >= 3 && strings.HasPrefix(name, s) {
			d = min(d, 1)
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace or swap with the next to turn a into b.
func distance(a, b string) int {
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := one[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(one[j+1]+1, row[j]+1, change)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], two[j-1]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}
