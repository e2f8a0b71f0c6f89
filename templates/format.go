package templates

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/state"
)

// Numbers and their units are joined by a narrow space at which no line breaks.
const thin = "\u202f"

// number groups the digits of n by three.
func number[N int | int64 | uint64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	if n > 0 {
		s = strconv.FormatUint(uint64(n), 10)
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "−", s[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, digit := range []byte(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteString(thin)
		}
		b.WriteByte(digit)
	}
	return b.String()
}

// highShare is the share of failures from which it is drawn as bad.
const highShare = .05

// decimal shows about three significant digits: 0.4, 12.5, 318, 1 204.
func decimal(f float64) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return "—"
	case a == 0:
		return "0"
	case a < 0.1:
		return "< 0.1"
	case a < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	case a < 1e15:
		return number(int64(math.Round(f)))
	default:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
}

// percent shows part of whole. It says 100 % only of everything and 0 % only of nothing.
func percent(part, whole float64) string {
	p := 100 * part / whole
	switch {
	case part == 0 || part == whole:
	case p > 99.9:
		p = 99.9
	case p < 0.1:
		p = 0.1
	}
	return strings.TrimSuffix(strconv.FormatFloat(p, 'f', 1, 64), ".0") + thin + "%"
}

// duration shows seconds as people say them: 312 ms, 4.2 s, 3 m 10 s, 2 h 5 m, 3 d 4 h.
func duration(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "−", -seconds
	}
	ms := seconds * 1000
	switch {
	case math.IsNaN(seconds) || seconds > 1e11:
		return "—"
	case ms == 0:
		return "0" + thin + "ms"
	case ms < 0.95:
		return sign + strconv.FormatFloat(max(ms, 0.1), 'f', 1, 64) + thin + "ms"
	case ms < 999.5:
		return sign + strconv.FormatFloat(ms, 'f', 0, 64) + thin + "ms"
	case seconds < 9.95:
		return sign + strconv.FormatFloat(seconds, 'f', 1, 64) + thin + "s"
	}
	whole := int64(math.Round(seconds))
	switch {
	case whole < 60:
		return sign + unit(whole, "s")
	case whole < 3600:
		return sign + units(whole/60, "m", whole%60, "s")
	case whole < 86400:
		return sign + units(whole/3600, "h", whole%3600/60, "m")
	default:
		return sign + units(whole/86400, "d", whole%86400/3600, "h")
	}
}

// distance is how long after from a moment is, with its sign: +364 ms.
func distance(from, micros int64) string {
	if micros < from {
		return duration(float64(micros-from) / 1e6)
	}
	return "+" + duration(float64(micros-from)/1e6)
}

func unit(n int64, name string) string { return number(n) + thin + name }

func units(n int64, name string, rest int64, restName string) string {
	if rest == 0 {
		return unit(n, name)
	}
	return unit(n, name) + " " + unit(rest, restName)
}

// size shows a number of bytes: 512 B, 16 kB, 1.2 MB.
func size(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + thin + "B"
	case n < 1_000_000:
		return decimal(float64(n)/1e3) + thin + "kB"
	default:
		return decimal(float64(n)/1e6) + thin + "MB"
	}
}

func plural[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return number(n) + " " + one
	}
	return number(n) + " " + many
}

func utc(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros returns t in µs since 1970, 0 if t is zero.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// machineTime is RFC 3339 in milliseconds: what a script reads.
func machineTime(micros int64) string { return utc(micros).Format("2006-01-02T15:04:05.000Z") }

// clockTime is what stands on the page until a script turns it into an age.
func clockTime(micros int64) string { return utc(micros).Format("2 Jan 15:04:05") }

// brief is a time to the minute, without its day where that is clear.
func brief(micros int64, clockOnly bool) string {
	if clockOnly {
		return utc(micros).Format("15:04")
	}
	return utc(micros).Format("2 Jan 15:04")
}

// exactTime is shown where the moment matters more than its age.
func exactTime(micros int64) string { return utc(micros).Format("2006-01-02 15:04:05.000") }

// parseTime reads an ISO 8601 time as Celery sends it. Without an offset it is UTC. 0 means that it could not
// be read.
func parseTime(iso string) int64 {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, iso); err == nil {
			return at.UnixMicro()
		}
	}
	return 0
}

// shortID is the first eight characters of an id.
func shortID(id string) string { return head(id, 8) }

// head is the first n characters of s.
func head(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// excerpt is s on one line, at most n characters of it.
func excerpt(s string, n int) string {
	cut := head(s, n)
	short := strings.Join(strings.Fields(cut), " ")
	if len(cut) < len(s) {
		return short + "…"
	}
	return short
}

// clip cuts s to at most n bytes at a character's edge and reports whether anything went.
func clip(s string, n int) (string, bool) {
	head := truncate.Bytes(s, n)
	return head, len(head) < len(s)
}

// taskModule and taskBase split a dotted task name, so that the telling part can stand out.
func taskModule(name string) string { return name[:len(name)-len(taskBase(name))] }

func taskBase(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 && i < len(name)-1 {
		return name[i+1:]
	}
	return name
}

// splitWorker parts a node name after its @: celery@ and the host.
func splitWorker(name string) (node, host string) {
	i := strings.IndexByte(name, '@') + 1
	return name[:i], name[i:]
}

// stateWord is a state as a word in a sentence: Success, Retry, Progress.
func stateWord(s state.State) string {
	if s == "" {
		return "Unknown"
	}
	return string(s[:1]) + strings.ToLower(string(s[1:]))
}

func statusWord(s state.Status) string {
	if s == "" {
		return "Unknown"
	}
	return strings.ToUpper(string(s[:1])) + string(s[1:])
}

// stateClass names a built-in state in CSS; all custom states share one.
func stateClass(s state.State) string {
	switch s {
	case state.Pending, state.Received, state.Started, state.Success,
		state.Failure, state.Retry, state.Revoked, state.Rejected:
		return strings.ToLower(string(s))
	}
	return "custom"
}

func stateIcon(s state.State) string {
	switch s {
	case state.Pending:
		return "circle-dashed"
	case state.Received:
		return "inbox"
	case state.Started:
		return "play"
	case state.Retry:
		return "rotate-cw"
	case state.Success:
		return "circle-check"
	case state.Failure:
		return "circle-x"
	case state.Revoked:
		return "ban"
	case state.Rejected:
		return "octagon-x"
	}
	return "circle-dot"
}

func statusIcon(s state.Status) string {
	switch s {
	case state.Online:
		return "activity"
	case state.Late:
		return "clock"
	case state.Stopping:
		return "circle-stop"
	case state.Offline:
		return "unplug"
	}
	return "circle-dot"
}

// softwareVersion joins what a worker says of itself: py-celery 5.7.0.
func softwareVersion(w state.Worker) string {
	var parts []string
	for _, s := range []*string{w.Software, w.Version} {
		if s != nil && *s != "" {
			parts = append(parts, *s)
		}
	}
	return strings.Join(parts, " ")
}
