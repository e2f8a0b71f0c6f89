package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func lockScenes() map[string]scene {
	shown := layout(templates.SectionDuplicates, "/locks")
	failed := templates.Locks{Read: locks.Snapshot{
		Source: "redis://app:***@cache:6379/1",
		Error:  "the user of redis://app:***@cache:6379/1 may not use SCAN on the keys of locks: NOPERM " + evil,
	}}

	return map[string]scene{
		"locks":         {shown, lockList()},
		"locks-none":    {dark(shown), templates.Locks{Read: locks.Snapshot{At: at(0), Source: "redis://cache:6379/1"}}},
		"locks-unread":  {shown, templates.Locks{Read: locks.Snapshot{Source: "redis://cache:6379/1"}}},
		"locks-failed":  {shown, failed},
		"locks-off":     {shown, templates.Locks{Off: true}},
		"locks-hostile": {shown, templates.Locks{Total: 10_001, Found: 1, Find: evil, Locks: []locks.Lock{hostileLock()}, Read: locks.Snapshot{At: at(0), Source: evil, More: true, Scanning: true}}},
	}
}

func lockList() templates.Locks {
	print := "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	charge := locks.Lock{
		Key: "lock:celery:exec:billing.charge:" + print, Kind: locks.Idempotent, Name: "billing.charge", Fingerprint: print,
		State: locks.Processing, Value: "processing", FirstSeenAt: at(second), AcquiredAt: at(0), AcquiredFrom: locks.AcquiredTask,
		ExpiresAt: at(600 * second), Version: "0123456789abcdef",
		Holder: &locks.Holder{TaskID: retried().ID, Status: locks.Running, State: state.Started, Worker: "celery@a", StartedAt: at(0)},
	}
	with := func(change func(l *locks.Lock)) locks.Lock {
		l := charge
		h := *charge.Holder
		l.Holder = &h
		change(&l)
		return l
	}
	list := []locks.Lock{
		with(func(l *locks.Lock) {
			l.Gone = at(20 * second)
			l.Marks = []locks.Mark{{Kind: locks.SecondRun, Text: "The TTL of the lock has ended while its task runs, and a second run has started: b1."}}
		}),
		with(func(l *locks.Lock) {
			l.Gone, l.Key = at(20*second), l.Key+"2"
			l.Marks = []locks.Mark{{Kind: locks.Expired, Text: "The TTL of the lock has ended while its task runs: a second run can start."}}
		}),
		with(func(l *locks.Lock) {
			l.Holder.Status, l.Holder.Certain = locks.Lost, true
			l.Marks = []locks.Mark{
				{Kind: locks.Stuck, Text: "Its task was running on celery@a, which is offline. Calls are turned away until the lock expires."},
				{Kind: locks.TooShort, Text: "Its TTL, 10m, is below twice the p99 run time of the task, 6m: it can expire in mid-run."},
			}
		}),
		with(func(l *locks.Lock) { l.Key += "3" }),
		with(func(l *locks.Lock) {
			l.Key, l.Kind, l.Name, l.Fingerprint, l.State = "qo_mail.send_to-ann", locks.Once, "mail.send", "", locks.Held
			l.AcquiredAt, l.AcquiredFrom, l.Holder = time.Time{}, "", nil
		}),
		with(func(l *locks.Lock) {
			l.Key, l.Kind, l.State = "SINGLETONLOCK_098f6bcd4621d373cade4e832627b4f6", locks.Singleton, locks.Held
			l.ExpiresAt, l.Persistent, l.Holder.Status, l.Holder.Certain = time.Time{}, true, locks.Waiting, true
		}),
		with(func(l *locks.Lock) {
			l.Key, l.Kind, l.Name, l.State, l.Fingerprint, l.Value = "app:lock", locks.OtherKind, "", locks.UnknownState, "", ""
			l.Problem, l.Holder = "Its value is not a string.", nil
		}),
		with(func(l *locks.Lock) {
			l.Key, l.State, l.Value, l.Holder.Status, l.Holder.State = l.Key+"4", locks.Completed, "completed", locks.Ended, state.Success
		}),
	}
	v := templates.Locks{Locks: list, Total: 900, Found: 900, Read: locks.Snapshot{At: at(21 * second), Source: "redis://cache:6379/1"}}
	v.Filter = templates.LockChoices{Chosen: "stuck", Hidden: []templates.Param{{Name: "show", Value: "stuck"}}, List: []templates.LockChoice{
		{Label: "All", Href: "/ops/locks", Count: 900}, {Value: "stuck", Label: "Stuck", Href: "/ops/locks?show=stuck", Count: 1},
	}}
	return v
}

func hostileLock() locks.Lock {
	return locks.Lock{
		Key: evil, Kind: locks.OtherKind, Name: evil, State: locks.UnknownState, Value: evil, Problem: evil, FirstSeenAt: at(0), Persistent: true,
		Holder: &locks.Holder{TaskID: evil, Worker: evil, Status: locks.UnknownHolder}, Marks: []locks.Mark{{Kind: locks.Stuck, Text: evil}},
	}
}
