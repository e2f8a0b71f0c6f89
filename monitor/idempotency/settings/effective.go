package settings

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// answer is whether something holds.
type answer uint8

const (
	unclear answer = iota
	no
	yes
)

// flag reads a boolean setting. None is false, as for Celery.
func (w *Worker) flag(name string) answer {
	v, ok := w.Conf[name]
	if !ok {
		if w.predates(name) {
			return no
		}
		return unclear
	}
	var set any
	if json.Unmarshal(v, &set) != nil {
		return unclear
	}
	switch set := set.(type) {
	case nil:
		return no
	case bool:
		return answerOf(set)
	case float64:
		return answerOf(set != 0)
	}
	return unclear
}

func answerOf(b bool) answer {
	if b {
		return yes
	}
	return no
}

// since is the version of Celery that brought a setting. Workers of an older one do not have it.
func since() map[string][2]int {
	return map[string][2]int{
		"task_acks_on_failure":                                {5, 7},
		"task_acks_on_timeout":                                {5, 7},
		"task_retry_on_worker_lost":                           {5, 7},
		"worker_cancel_long_running_tasks_on_connection_loss": {5, 1},
		"worker_deduplicate_successful_tasks":                 {5, 1},
	}
}

// predates reports whether the worker's Celery is known to be older than a setting.
func (w *Worker) predates(name string) bool {
	first, listed := since()[name]
	return listed && w.olderThan(first)
}

func (w *Worker) olderThan(v [2]int) bool {
	parts := strings.SplitN(w.Version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, wrong := strconv.Atoi(parts[1])
	return err == nil && wrong == nil && (major < v[0] || major == v[0] && minor < v[1])
}

// attribute reads a boolean attribute of a task, else the setting that it defaults to.
func (w *Worker) attribute(t *Task, name, setting string) answer {
	switch t.Attributes[name] {
	case "True":
		return yes
	case "False":
		return no
	}
	return w.flag(setting)
}

// acksOn reads acks_on_failure and acks_on_timeout, which default to acks_on_failure_or_timeout, and that to true.
func (w *Worker) acksOn(t *Task, name string) answer {
	for _, n := range []string{name, "acks_on_failure_or_timeout"} {
		switch t.Attributes[n] {
		case "True":
			return yes
		case "False":
			return no
		}
	}
	for _, n := range []string{"task_" + name, "task_acks_on_failure_or_timeout"} {
		v, ok := w.Conf[n]
		switch {
		case !ok && !w.predates(n):
			return unclear
		case ok && string(v) != "null":
			return w.flag(n)
		}
	}
	return yes
}

// effective are the settings of one task on one worker.
type effective struct {
	late, reject, retry, acksFailure, acksTimeout, ignore answer
	limit                                                 time.Duration // hard time limit, 0 if none
	limitKnown                                            bool
	serializer                                            string // empty if unknown
	unlimited                                             bool   // max_retries is None
}

// settingsOf returns what holds for a task on the worker.
func (w *Worker) settingsOf(t *Task) effective {
	e := effective{
		late:        w.attribute(t, "acks_late", "task_acks_late"),
		reject:      w.attribute(t, "reject_on_worker_lost", "task_reject_on_worker_lost"),
		retry:       w.attribute(t, "retry_on_worker_lost", "task_retry_on_worker_lost"),
		acksFailure: w.acksOn(t, "acks_on_failure"),
		acksTimeout: w.acksOn(t, "acks_on_timeout"),
		ignore:      w.attribute(t, "ignore_result", "task_ignore_result"),
		serializer:  t.Attributes["serializer"],
	}
	if w.olderThan([2]int{5, 7}) {
		e.retry = no // an attribute of that name means nothing there
	}
	_, hasRetries := t.Attributes["max_retries"]
	_, described := t.Attributes["acks_late"] // it was asked for its attributes
	e.unlimited = described && !hasRetries
	if e.serializer == "" {
		e.serializer = w.text("task_serializer")
	}
	e.limit, e.limitKnown = w.hardLimit(t)
	return e
}

// hardLimit is the hard time limit of a task.
func (w *Worker) hardLimit(t *Task) (time.Duration, bool) {
	if s, ok := t.Attributes["time_limit"]; ok {
		d, ok := seconds(s)
		return d, ok
	}
	if w.TimeLimit > 0 {
		return w.TimeLimit, true
	}
	v, ok := w.Conf["task_time_limit"]
	if !ok {
		return 0, false
	}
	if string(v) == "null" {
		return 0, true
	}
	return seconds(string(v))
}

// text is a setting that is a text, empty if it is none.
func (w *Worker) text(name string) string {
	var s string
	_ = json.Unmarshal(w.Conf[name], &s) // what is not a text is unknown
	return s
}

// list is a setting that is a list of texts, nil if it is none.
func (w *Worker) list(name string) []string {
	var list []string
	if json.Unmarshal(w.Conf[name], &list) != nil {
		return nil
	}
	return list
}

// seconds reads a number of seconds.
func seconds(s string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0) || f > 1e9 {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}

// Expiry reads result_expires: a number of seconds, or the text of a timedelta (1 day, 0:00:00). It is 0 for results
// that do not expire, and false for anything else.
func Expiry(v json.RawMessage) (time.Duration, bool) {
	text := string(v)
	if text == "null" {
		return 0, true
	}
	if d, ok := seconds(text); ok {
		return d, true
	}
	if json.Unmarshal(v, &text) != nil {
		return 0, false
	}
	if d, ok := seconds(text); ok {
		return d, true
	}
	return timedelta(text)
}

// timedelta reads what Python prints of one: [N day[s], ]H:MM:SS[.ffffff].
func timedelta(text string) (time.Duration, bool) {
	var total time.Duration
	if count, rest, found := strings.Cut(text, " day"); found {
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > 36_500 {
			return 0, false
		}
		total = time.Duration(n) * 24 * time.Hour
		text = strings.TrimPrefix(strings.TrimPrefix(rest, "s"), ", ")
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return 0, false
	}
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		f, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || f < 0 || f >= 60 {
			return 0, false
		}
		total += time.Duration(f * float64(unit))
	}
	return total, true
}
