package state

import "strings"

// wrapper is the exception that billiard and Celery report for one that they made in the worker's main process: a hard
// time limit, a lost pool process. Only the traceback has which.
const wrapper = "ExceptionWithTraceback("

// exceptionRepr is an exception's repr. Where it is only the wrapper, the repr is made of the last line of the traceback.
func exceptionRepr(exception, traceback string) string {
	if !strings.HasPrefix(exception, wrapper) {
		return exception
	}
	last := strings.TrimRight(traceback, "\n")
	last = last[strings.LastIndexByte(last, '\n')+1:]
	typ, message, _ := strings.Cut(last, ": ")
	typ = typ[strings.LastIndexByte(typ, '.')+1:]
	switch {
	case typ == "" || strings.ContainsAny(typ, " \"'()"):
		return exception
	case strings.HasPrefix(message, typ+"("): // TimeLimitExceeded's message is its own repr
		return message
	case message == "":
		return typ + "()"
	}
	quote := "'"
	if strings.Contains(message, "'") && !strings.Contains(message, `"`) {
		quote = `"`
	}
	message = strings.NewReplacer(`\`, `\\`, quote, `\`+quote).Replace(message)
	return typ + "(" + quote + message + quote + ")"
}
