package fingerprint

import "strings"

// wrapper is what billiard raises in the place of an exception from another process, whose traceback
// ends in the true one.
const wrapper = "ExceptionWithTraceback"

// raised is the exception at the end of a traceback.
type raised struct{ typ, message, place string }

// read takes the exception that was raised last: of a chain, the one that got through.
func read(traceback string) raised {
	for _, cause := range []string{"another exception occurred:\n\n", "cause of the following exception:\n\n"} {
		if i := strings.LastIndex(traceback, cause); i >= 0 {
			traceback = traceback[i+len(cause):]
		}
	}
	r, rest := readOne(traceback)
	if r.typ == wrapper {
		if i := strings.Index(rest, head); i >= 0 {
			r, _ = readOne(rest[i:])
			r.message = strings.TrimSuffix(strings.TrimSpace(r.message), `"""`)
		}
	}
	return r
}

// head is the first line of a traceback.
const head = "Traceback (most recent call last):\n"

// group stands before the head of an exception group's traceback, all of which has a margin.
const group = "+ Exception Group "

// readOne reads the frames of one exception, and the lines below them. rest is what stands there as it is.
func readOne(traceback string) (r raised, rest string) {
	before, traceback, ok := strings.Cut(traceback, head)
	if !ok {
		return raised{}, ""
	}
	bare := func(line string) string { return line }
	if strings.HasSuffix(before, group) {
		bare = withoutMargin
	}
	own := false
	for traceback != "" {
		line, after, _ := strings.Cut(traceback, "\n")
		line = bare(line)
		if f, ok := readFrame(line); ok {
			// The innermost frame of the application; without one, the innermost of all.
			if f.function != "" && (!f.library || !own) {
				r.place = f.place()
			}
			own = own || f.function != "" && !f.library
		} else if !strings.HasPrefix(line, "  ") {
			break
		}
		traceback = after
	}
	line := bare(traceback)
	first, _, _ := strings.Cut(line, "\n")
	typ, message, _ := strings.Cut(first, ":")
	if !isTypeName(typ) {
		return raised{place: r.place}, ""
	}
	r.typ, r.message = unqualified(typ), message
	if _, more, ok := strings.Cut(line, "\n"); ok && line == traceback {
		r.message += "\n" + more // an exception group has its members there, behind a margin
	}
	return r, traceback
}

// withoutMargin takes the bar off that stands before a line of an exception group.
func withoutMargin(line string) string {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "| "); ok {
		return rest
	}
	return line
}

// frame is one call of a traceback.
type frame struct {
	file, function string // the function is empty where the file could not be compiled
	library        bool
}

// readFrame reads a line such as
//
//	File "/srv/shop/billing.py", line 8, in charge
func readFrame(line string) (frame, bool) {
	rest, ok := strings.CutPrefix(line, `  File "`)
	if !ok {
		return frame{}, false
	}
	file, rest, ok := strings.Cut(rest, `", line `)
	if !ok {
		return frame{}, false
	}
	_, function, _ := strings.Cut(rest, ", in ")
	return frame{file: file, function: strings.TrimSpace(function), library: isLibrary(file)}, true
}

// place names the function by the last part of its file's path, since workers keep code in different
// directories.
func (f frame) place() string {
	path := strings.ReplaceAll(f.file, `\`, "/")
	name := path[strings.LastIndexByte(path, '/')+1:]
	if dir := strings.TrimSuffix(path, "/"+name); name == "__init__.py" && dir != path {
		name = dir[strings.LastIndexByte(dir, '/')+1:] + "/" + name
	}
	return name + " in " + f.function
}

// isLibrary reports whether a file is not the application's own: it is installed, part of Python, or no file
// at all.
func isLibrary(file string) bool {
	path := strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(path, "<") {
		return true
	}
	if strings.Contains(path, "/site-packages/") || strings.Contains(path, "/dist-packages/") {
		return true
	}
	// /usr/lib/python3.12/json/decoder.py and C:\Python312\Lib\json\decoder.py
	_, after, ok := strings.Cut(path, "/lib/python")
	if !ok {
		_, after, ok = strings.Cut(path, "/lib/pypy")
	}
	if ok {
		version, _, inside := strings.Cut(after, "/")
		return inside && strings.Trim(version, "0123456789.t") == ""
	}
	before, _, ok := strings.Cut(path, "/Lib/")
	return ok && strings.Contains(before[strings.LastIndexByte(before, '/')+1:], "Python")
}

// Part is a piece of a traceback.
type Part struct {
	Text    string
	Frames  int  // calls in it; 0 for text between them
	Library bool // the calls are not of the application's own code
}

// Parts splits a traceback into runs of calls of one kind and the text around them. Their texts, joined, are the
// traceback.
func Parts(traceback string) []Part {
	var list []Part
	start, end := 0, 0 // of the last part
	margin := false
	for end < len(traceback) {
		line, _, _ := strings.Cut(traceback[end:], "\n")
		next := min(end+len(line)+1, len(traceback))
		margin = margin || strings.Contains(line, group)
		if margin {
			line = withoutMargin(line)
		}
		var p Part
		if f, ok := readFrame(line); ok {
			p = Part{Frames: 1, Library: f.library}
		}
		if last := len(list) - 1; last >= 0 && list[last].takes(p, line) {
			p.Frames += list[last].Frames
			p.Library = list[last].Library
			list = list[:last]
		} else {
			start = end
		}
		p.Text = traceback[start:next]
		list = append(list, p)
		end = next
	}
	return list
}

// takes reports whether the line that is next belongs to p: a call of the same kind, the code of a call, or
// more text.
func (p Part) takes(next Part, line string) bool {
	if p.Frames > 0 && next.Frames == 0 {
		return strings.HasPrefix(line, "  ")
	}
	return (p.Frames > 0) == (next.Frames > 0) && p.Library == next.Library
}
