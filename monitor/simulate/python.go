package simulate

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRepr is Celery's budget for the repr of args, kwargs and results, in characters.
const maxRepr = 1024

// reprList is what celery.utils.saferepr makes of a tuple that holds one list of n items: cut in the
// middle of a token once the budget is spent, with the brackets closed.
func reprList(n int, item func(i int) string) string {
	b := append(make([]byte, 0, maxRepr+16), "(["...)
	for i := range n {
		if i > 0 {
			b = append(b, ", "...)
		}
		if left := maxRepr - len(b); left <= 0 {
			return string(b) + "...],)"
		} else if s := item(i); len(s) < left {
			b = append(b, s...)
		} else {
			return string(b) + s[:left] + "..., ...],)"
		}
	}
	return string(b) + "],)"
}

// reprText is what saferepr makes of text in a dict under key, cut at a space if it is too long.
func reprText(key, text string) string {
	head := "{'" + key + "': '"
	text = strings.ReplaceAll(text, "'", `\'`)
	runes := []rune(text)
	if left := maxRepr - len(head) + 1; len(runes) > left {
		text = string(runes[:left])
		text = text[:strings.LastIndexByte(text, ' ')] + "..."
	}
	return head + text + "'}"
}

// number is a whole number in decimal.
func number(n int) string { return strconv.Itoa(n) }

// frame is one frame of a Python traceback. The part at of the code is underlined.
type frame struct {
	file string
	line int
	fn   string
	code string
	at   string
}

func (f frame) String() string {
	s := fmt.Sprintf("  File \"%s\", line %d, in %s\n", f.file, f.line, f.fn)
	if f.code != "" {
		s += "    " + f.code + "\n"
	}
	if f.at != "" {
		indent := 4 + strings.Index(f.code, f.at)
		s += strings.Repeat(" ", indent) + strings.Repeat("^", len(f.at)) + "\n"
	}
	return s
}

const (
	tracebackHead = "Traceback (most recent call last):\n"
	tracebackNext = "\nDuring handling of the above exception, another exception occurred:\n\n"
	site          = "/srv/shop/venv/lib/python3.12/site-packages/"
)

// taskFrames are the frames of Celery around every task (5.7).
func taskFrames() string {
	return frame{site + "celery/app/trace.py", 564, "trace_task", "R = retval = fun(*args, **kwargs)", "fun(*args, **kwargs)"}.String() +
		frame{site + "celery/app/trace.py", 883, "__protected_call__", "return self.run(*args, **kwargs)", "self.run(*args, **kwargs)"}.String()
}

// raised is the traceback of a task that let an exception through.
func raised(last string, frames ...frame) string {
	var b strings.Builder
	b.WriteString(tracebackHead)
	b.WriteString(taskFrames())
	for _, f := range frames {
		b.WriteString(f.String())
	}
	b.WriteString(last + "\n")
	return b.String()
}

// retried is the traceback of a task that caught an exception and called self.retry.
func retried(last, exception string, frames ...frame) string {
	var b strings.Builder
	b.WriteString(tracebackHead)
	for _, f := range frames {
		b.WriteString(f.String())
	}
	b.WriteString(last + "\n" + tracebackNext + tracebackHead + taskFrames())
	outer := frames[0]
	outer.line, outer.code, outer.at = outer.line+4, "raise self.retry(exc=exc)", "self.retry(exc=exc)"
	b.WriteString(outer.String())
	b.WriteString(frame{site + "celery/app/task.py", 963, "retry", "raise ret", ""}.String())
	b.WriteString("celery.exceptions.Retry: Retry in {s}s: " + exception + "\n")
	return b.String()
}
