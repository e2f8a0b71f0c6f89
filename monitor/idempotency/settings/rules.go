package settings

import (
	"fmt"
	"strconv"
	"time"
)

// Delivery limits where nobody sets one.
const (
	defaultVisibilityTimeout = time.Hour        // of Kombu, on Redis
	defaultConsumerTimeout   = 30 * time.Minute // of RabbitMQ
)

// subject is a task on workers with the same settings.
type subject struct {
	*Worker
	*effective

	cancels, deduplicates answer // settings of the worker

	task     *Task
	observed Observed
	// hold is how long a broker leaves a message unacknowledged before it delivers it again: on Redis the shortest
	// visibility timeout of all workers, since each of them restores the messages of all.
	hold time.Duration
}

// verdict is the outcome of a rule for one subject.
type verdict struct {
	applies bool
	risk    Risk
	detail  string        // figures of the task
	need    time.Duration // for what the setting has to allow
}

func possible(applies bool) verdict { return verdict{applies: applies, risk: Possible} }

// rule is a cause to look for in each task on each worker.
type rule struct {
	Finding // without what differs from task to task; {hold} in its query stands for subject.hold

	judge func(s *subject) verdict
	value func(need time.Duration) string // nil if Finding has it
}

// rules are all of them.
func rules() []rule {
	list := append(acknowledgement(), timeouts()...)
	return append(list, outcomes()...)
}

// acknowledgement are the rules on when a message is acknowledged.
func acknowledgement() []rule {
	return []rule{
		{Finding: Finding{
			Cause: "early-acknowledgement", Effect: Lost, Title: "Messages are acknowledged before the task runs",
			Consequence: "If the worker is killed, loses power or runs out of memory, the task that it runs is lost: the broker has no message to deliver again.",
			Setting:     "task_acks_late", Value: "True",
			Cost:  "A task can run twice, so it must be idempotent. Set task_reject_on_worker_lost or task_retry_on_worker_lost with it.",
			Query: "is:orphaned OR exc:WorkerLostError",
		}, judge: func(s *subject) verdict { return possible(s.late == no) }},
		{Finding: Finding{
			Cause: "worker-lost", Effect: Lost, Title: "Late acknowledgement does not cover a lost pool process",
			Consequence: "If a pool process is killed (out of memory, SIGKILL), the worker acknowledges the message and the task fails with WorkerLostError, in spite of acks_late.",
			Setting:     "task_reject_on_worker_lost", Value: "True",
			Cost:  "A task that kills its process is delivered again without end. From Celery 5.7 on, task_retry_on_worker_lost = True stops after max_retries.",
			Query: "exc:WorkerLostError",
		}, judge: func(s *subject) verdict {
			return possible(s.late == yes && s.reject == no && s.retry == no && s.Pool == "prefork")
		}},
		{Finding: Finding{
			Cause: "endless-redelivery", Effect: Twice, Title: "A task that kills its process is delivered again without end",
			Consequence: "reject_on_worker_lost puts the message back each time, so a task that runs out of memory runs, and kills a process, over and over.",
			Setting:     "task_retry_on_worker_lost", Value: "True",
			Cost:  "Needs Celery 5.7. After max_retries the task fails and is not run again. On RabbitMQ, a quorum queue with a delivery limit bounds it too.",
			Query: "is:redelivered",
		}, judge: func(s *subject) verdict { return possible(s.late == yes && s.reject == yes && s.retry == no) }},
		{Finding: Finding{
			Cause: "endless-retries", Effect: Twice, Title: "A lost task is retried without end",
			Consequence: "retry_on_worker_lost sends the task again up to max_retries, which is None: a task that always kills its process never stops.",
			Setting:     "max_retries", Value: "3",
			Cost:  "After so many retries, of any kind, the task fails.",
			Query: "exc:WorkerLostError retries:>3",
		}, judge: func(s *subject) verdict { return possible(s.retry == yes && s.unlimited) }},
		{Finding: Finding{
			Cause: "retry-unsupported", Effect: Lost, Title: "retry_on_worker_lost has no effect before Celery 5.7",
			Consequence: "The task asks to be retried if its process is lost, but this worker's Celery does not know the attribute: the task fails with WorkerLostError.",
			Setting:     "task_reject_on_worker_lost", Value: "True",
			Cost:  "A task that kills its process is delivered again without end. The alternative is to upgrade the worker.",
			Query: "exc:WorkerLostError",
		}, judge: func(s *subject) verdict {
			return possible(s.task.Attributes["retry_on_worker_lost"] == "True" && s.olderThan([2]int{5, 7}) && s.reject == no)
		}},
		{Finding: Finding{
			Cause: "failure-discarded", Effect: Lost, Title: "The message of a failed task is rejected",
			Consequence: "acks_on_failure is False: when the task fails, the broker drops its message, or moves it to the dead-letter exchange of its queue if there is one. It is not run again.",
			Setting:     "task_acks_on_failure", Value: "True",
			Cost:  "Failed messages do not reach a dead-letter exchange. Before Celery 5.7 the setting is task_acks_on_failure_or_timeout.",
			Query: "state:failure",
		}, judge: func(s *subject) verdict { return possible(s.late == yes && s.acksFailure == no) }},
		{Finding: Finding{
			Cause: "timeout-requeued", Effect: Twice, Title: "A task that exceeds its time limit is delivered again",
			Consequence: "acks_on_timeout is False: a run that takes longer than time_limit is killed and its message put back. One that always takes so long runs without end.",
			Setting:     "task_acks_on_timeout", Value: "True",
			Cost:  "A task that exceeds its time limit fails and is not run again. Before Celery 5.7 the setting is task_acks_on_failure_or_timeout.",
			Query: "exc:TimeLimitExceeded",
		}, judge: func(s *subject) verdict {
			return possible(s.late == yes && s.acksTimeout == no && s.limitKnown && s.limit > 0)
		}},
		{Finding: Finding{
			Cause: "connection-loss", Effect: Twice, Title: "Tasks go on when the connection to the broker is lost",
			Consequence: "The broker delivers the message of a running acks_late task to another worker as soon as the connection is gone, and the first run goes on: both run to their end.",
			Setting:     "worker_cancel_long_running_tasks_on_connection_loss", Value: "True",
			Cost:  "What a task has done up to then is thrown away, and done again by the next run.",
			Query: "is:redelivered",
		}, judge: func(s *subject) verdict {
			return possible(s.late == yes && s.cancels == no)
		}},
	}
}

// timeouts are the rules that compare settings with how long tasks take.
func timeouts() []rule {
	const visibility = "A task of a worker that was killed is delivered again only after this time."
	visible := func(need time.Duration) string {
		return fmt.Sprintf("{'visibility_timeout': %d}", int64(need/time.Second))
	}
	return []rule{
		{Finding: Finding{
			Cause: "visibility-run-time", Effect: Twice, Title: "Runs outlast the visibility timeout",
			Consequence: "Redis delivers a message again that is not acknowledged within the visibility timeout, and an acks_late task acknowledges only at its end: a second run starts beside the first. The shortest timeout of all workers counts, since each restores the messages of all.",
			Setting:     "broker_transport_options", Cost: visibility, Query: "is:redelivered",
		}, judge: func(s *subject) verdict {
			return tooLong(s, s.Transport == redis && s.late == yes, s.observed.P99, s.observed.Longest)
		}, value: visible},
		{Finding: Finding{
			Cause: "visibility-eta", Effect: Twice, Title: "ETAs lie beyond the visibility timeout",
			Consequence: "A worker holds a task with an ETA or countdown unacknowledged until then. After the visibility timeout Redis delivers it to another worker too, each time again, and all of them run it.",
			Setting:     "broker_transport_options", Cost: visibility, Query: "is:redelivered eta:..",
		}, judge: func(s *subject) verdict { return tooFar(s, s.Transport == redis) }, value: visible},
		{Finding: Finding{
			Cause: "visibility-prefetch", Effect: Twice, Title: "Reserved tasks wait beyond the visibility timeout",
			Consequence: "A worker takes more messages than it runs, and those wait unacknowledged behind long runs. After the visibility timeout Redis delivers them to another worker too.",
			Setting:     "worker_prefetch_multiplier", Value: "1",
			Cost:  "One round trip to the broker between two tasks, which counts only for very short ones.",
			Query: "is:redelivered",
		}, judge: func(s *subject) verdict { return waitsTooLong(s, s.Transport == redis) }},
		{Finding: Finding{
			Cause: "visibility-no-limit", Effect: Twice, Title: "Nothing ends a run before the visibility timeout",
			Consequence: "A run that hangs, or only once takes longer than the visibility timeout, is run a second time beside it: its time limit is longer or there is none.",
			Setting:     "task_time_limit", Query: "is:redelivered run:>={hold}",
			Cost: "Runs that take longer are killed and fail.",
		}, judge: func(s *subject) verdict {
			v := possible(s.Transport == redis && s.late == yes && s.limitKnown && (s.limit == 0 || s.limit >= s.hold))
			v.need = s.hold
			return v
		}, value: func(hold time.Duration) string { return inSeconds(max(hold*9/10, time.Second)) }},
		{Finding: Finding{
			Cause: "consumer-timeout-run-time", Effect: Twice, Title: "Runs outlast RabbitMQ's consumer timeout",
			Consequence: "RabbitMQ closes the channel of a worker that holds a message for longer than consumer_timeout, 30 minutes unless the broker sets another, and delivers what it held again. Umbel cannot see what the broker sets.",
			Setting:     "consumer_timeout", Query: "is:redelivered",
			Cost: "Set on the broker or by policy, in milliseconds. A worker that hangs keeps its messages for that long.",
		}, judge: func(s *subject) verdict {
			return tooLong(s, s.Transport == rabbit && s.late == yes, s.observed.P99, s.observed.Longest)
		}, value: milliseconds},
		{Finding: Finding{
			Cause: "consumer-timeout-eta", Effect: Twice, Title: "ETAs lie beyond RabbitMQ's consumer timeout",
			Consequence: "A worker holds a task with an ETA or countdown unacknowledged until then. RabbitMQ closes its channel after consumer_timeout, 30 minutes unless the broker sets another, and delivers everything that the worker held again. Umbel cannot see what the broker sets.",
			Setting:     "consumer_timeout", Query: "is:redelivered eta:..",
			Cost: "Set on the broker or by policy, in milliseconds. A worker that hangs keeps its messages for that long.",
		}, judge: func(s *subject) verdict { return tooFar(s, s.Transport == rabbit) }, value: milliseconds},
		{Finding: Finding{
			Cause: "time-limit", Effect: Lost, Title: "The time limit is close to how long runs take",
			Consequence: "A run that exceeds its hard time limit is killed halfway: what it had not done yet is lost.",
			Setting:     "task_time_limit", Query: "exc:TimeLimitExceeded",
			Cost: "A run that hangs holds its pool process for longer.",
		}, judge: func(s *subject) verdict {
			if !s.limitKnown || s.limit == 0 || s.observed.Runs == 0 || s.observed.P99 < s.limit*4/5 {
				return verdict{}
			}
			return verdict{
				applies: true, risk: Exceeded, need: 2 * s.observed.P99,
				detail: "p99 of run times " + short(s.observed.P99) + ", limit " + short(s.limit),
			}
		}, value: func(need time.Duration) string { return inSeconds(roundUp(need)) }},
	}
}

const (
	redis  = "redis"
	rabbit = "amqp"

	cancelOnLoss = "worker_cancel_long_running_tasks_on_connection_loss"
	deduplicate  = "worker_deduplicate_successful_tasks"
)

func milliseconds(need time.Duration) string { return strconv.FormatInt(need.Milliseconds(), 10) }

func inSeconds(need time.Duration) string { return strconv.FormatInt(int64(need/time.Second), 10) }

// tooLong compares run times with how long the broker waits.
func tooLong(s *subject, concerned bool, p99, longest time.Duration) verdict {
	if !concerned || s.observed.Runs == 0 || longest <= s.hold && 2*p99 <= s.hold {
		return verdict{}
	}
	v := verdict{applies: true, risk: Possible, need: 2 * max(p99, longest)}
	if longest > s.hold {
		v.risk = Exceeded
	}
	v.detail = "p99 of run times " + short(p99) + ", longest " + short(longest) + ", timeout " + short(s.hold)
	return v
}

// tooFar compares ETAs with how long the broker waits.
func tooFar(s *subject, concerned bool) verdict {
	if !concerned || s.observed.Delay <= s.hold {
		return verdict{}
	}
	return verdict{
		applies: true, risk: Exceeded, need: 2 * s.observed.Delay,
		detail: "ETA up to " + short(s.observed.Delay) + " ahead, timeout " + short(s.hold),
	}
}

// waitsTooLong compares how long reserved messages wait with how long the broker does. A task that outlasts the timeout
// by itself is another finding.
func waitsTooLong(s *subject, concerned bool) verdict {
	if !concerned || s.Slots <= 0 || s.Prefetch <= s.Slots || s.observed.Runs == 0 || s.observed.Longest > s.hold {
		return verdict{}
	}
	rounds := (s.Prefetch + s.Slots - 1) / s.Slots // runs of one process until the last message is acknowledged
	if s.late != yes {
		rounds-- // its own run does not count
	}
	held := time.Duration(rounds) * s.observed.P99
	if held <= s.hold {
		return verdict{}
	}
	return verdict{
		applies: true, risk: Possible,
		detail: fmt.Sprintf("%d reserved for %d at once, p99 of run times %s, timeout %s", s.Prefetch, s.Slots, short(s.observed.P99), short(s.hold)),
	}
}

// outcomes are the rules on what is known of a run afterwards.
func outcomes() []rule {
	return []rule{
		{Finding: Finding{
			Cause: "no-deduplication", Effect: Twice, Title: "A message delivered again runs even if the task has succeeded",
			Consequence: "If the acknowledgement of an acks_late task is lost, the broker delivers a message whose task has already succeeded, and the worker runs it again.",
			Setting:     "worker_deduplicate_successful_tasks", Value: "True",
			Cost:  "Each redelivered message costs a read of the result backend, which must be persistent. Runs that overlap are not prevented.",
			Query: "is:redelivered",
		}, judge: func(s *subject) verdict {
			return possible(s.late == yes && s.deduplicates == no)
		}},
		{Finding: Finding{
			Cause: "result-ignored", Effect: Twice, Title: "Nothing tells that the task has already succeeded",
			Consequence: "The result is not stored, so neither worker_deduplicate_successful_tasks nor the check after a lost process can see that a redelivered task has succeeded: it runs again.",
			Setting:     "task_ignore_result", Value: "False",
			Cost:  "One write to the result backend for each task, kept for result_expires.",
			Query: "is:redelivered",
		}, judge: func(s *subject) verdict { return possible(s.late == yes && s.ignore == yes) }},
		{Finding: Finding{
			Cause: "result-expires", Effect: Twice, Title: "Results expire before a message can be delivered again",
			Consequence: "When the message comes again, its result is gone: a task that has succeeded runs again, and a client that still waits sees PENDING and sends it again.",
			Setting:     "result_expires", Query: "is:redelivered", Cost: "The result backend holds more results.",
		}, judge: expiresEarly, value: inSeconds},
		{Finding: Finding{
			Cause: "pickled-arguments", Effect: Other, Title: "Arguments are pickled",
			Consequence: "A lock on the fingerprint of the arguments needs JSON: it fails on objects, or sees other bytes for an equal call, which then runs twice. Whoever may publish can also run code in the workers.",
			Setting:     "task_serializer", Value: "'json'",
			Cost: "Callers pass numbers, texts, lists and dicts, not objects. Keep pickle in accept_content until the queues are empty.",
		}, judge: func(s *subject) verdict { return possible(isPickle(s.serializer)) }},
	}
}

// expiresEarly compares result_expires with when a message may be delivered again.
func expiresEarly(s *subject) verdict {
	v, ok := s.Conf["result_expires"]
	stored, reported := s.Conf["result_backend"]
	if !ok || !reported || string(stored) == "null" || s.ignore != no || s.Transport == "" {
		return verdict{}
	}
	expires, ok := Expiry(v)
	again := s.observed.Delay // of the run that comes too late
	if s.late == yes || again > 0 {
		again += s.hold
	}
	if !ok || expires == 0 || again <= expires {
		return verdict{}
	}
	return verdict{
		applies: true, risk: Possible, need: 2 * again,
		detail: "results are kept for " + short(expires) + ", it can come again after " + short(again),
	}
}

func isPickle(serializer string) bool {
	return serializer == "pickle" || serializer == "application/x-python-serialize"
}

// deliveryLimit returns how long each broker leaves a message unacknowledged, by transport.
func deliveryLimit(workers []Worker) map[string]time.Duration {
	limits := map[string]time.Duration{rabbit: defaultConsumerTimeout}
	for _, w := range workers {
		if w.Transport != redis {
			continue
		}
		d := w.VisibilityTimeout
		if d <= 0 {
			d = defaultVisibilityTimeout
		}
		if known, ok := limits[redis]; !ok || d < known {
			limits[redis] = d
		}
	}
	return limits
}
