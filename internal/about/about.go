// Package about says what a program was built from, as the build recorded it. It reads nothing else.
package about

import (
	_ "embed"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// licences has a line for each module that a build on any system may have: its path and its licence as SPDX writes it.
//
//go:embed licences.txt
var licences string

// Build is what a program was built from.
type Build struct {
	Commit   string // empty if it is not recorded
	Modified bool   // files differed from those of the commit
	Go       string // version
	Platform string // linux/amd64
	Parts    []Part // by name
}

// Part is something that the program contains.
type Part struct {
	Name, Version string
	Licence       string // as SPDX writes it, empty if it is not known
}

// Read returns what the running program was built from.
func Read() Build {
	b := Build{Go: strings.TrimPrefix(runtime.Version(), "go"), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	b.Parts = []Part{
		{"Go", b.Go, "BSD-3-Clause"},
		{"Lucide icons", "", "ISC"},
		{"uPlot", "", "MIT"},
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	known := Licences()
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Parts = append(b.Parts, Part{m.Path, m.Version, known[m.Path]})
	}
	slices.SortStableFunc(b.Parts, func(a, b Part) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return b
}

// Licences returns the licences of modules by path.
func Licences() map[string]string {
	known := map[string]string{}
	for line := range strings.Lines(licences) {
		module, licence, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[module] = licence
	}
	return known
}
