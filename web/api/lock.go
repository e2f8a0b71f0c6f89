package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/web/auth"
)

// Locks are the locks of tasks that run once, as last read. Null means unknown.
type Locks struct {
	At       Time    `json:"at" doc:"When the locks were last read; null if not yet."`
	Source   *string `json:"source" doc:"URL of their Redis, with passwords masked; null if none is configured."`
	Error    *string `json:"error" doc:"Why they could not be read the last time."`
	Scanning bool    `json:"scanning" doc:"Whether not all keys have been examined yet."`
	More     bool    `json:"more" doc:"Whether there are more than 10,000 locks; the others are left out."`
	Items    []Lock  `json:"items" nullable:"false"`
}

// Lock is a lock that an application holds so that a task runs once. Null means unknown.
type Lock struct {
	Key          string      `json:"key" example:"lock:celery:exec:billing.charge:9f86d0818…"`
	Kind         string      `json:"kind" enum:"idempotent,celery-once,celery-singleton,other"`
	Name         *string     `json:"name" doc:"Name of the task."`
	Fingerprint  *string     `json:"fingerprint" doc:"Digest of the call."`
	State        string      `json:"state" enum:"processing,completed,held,unknown" doc:"held: taken when the task was sent, by celery-once or celery-singleton."`
	Problem      *string     `json:"problem" doc:"Why the value tells nothing."`
	FirstSeenAt  Time        `json:"first_seen_at"`
	AcquiredAt   Time        `json:"acquired_at" doc:"When it was taken or, if its state is completed, when its task completed."`
	AcquiredFrom *string     `json:"acquired_from" doc:"How acquired_at is known: task (the times of its task) or ttl (what remains of the usual TTL)."`
	AgeSeconds   *float64    `json:"age_seconds" doc:"Since acquired_at; null if that is not known."`
	ExpiresAt    Time        `json:"expires_at"`
	TTLSeconds   *float64    `json:"ttl_seconds" doc:"Time that remains; null if it does not expire or is gone."`
	Persistent   bool        `json:"persistent" doc:"Whether it does not expire."`
	GoneAt       Time        `json:"gone_at" doc:"When it was found to be gone while its task still ran; null if it is there."`
	RunP99       *float64    `json:"run_p99_seconds" doc:"99th percentile of the run time of the task over the last 24 hours."`
	Holder       *LockHolder `json:"holder"`
	Marks        []LockMark  `json:"marks" nullable:"false" doc:"What is wrong with it, worst first."`
	Version      string      `json:"version" doc:"Names what was seen, for releasing it."`
}

// LockHolder is the task that holds a lock.
type LockHolder struct {
	TaskID    string   `json:"task_id"`
	Certain   bool     `json:"certain" doc:"Whether the lock names the task; else it is the newest one with the same call."`
	Status    string   `json:"status" enum:"running,waiting,ended,lost,unknown" doc:"lost: its worker died, or the task is lost."`
	State     *string  `json:"state" doc:"State of the task." example:"STARTED"`
	Worker    *string  `json:"worker"`
	Reason    *string  `json:"reason" doc:"Why it does not run any more."`
	StartedAt Time     `json:"started_at"`
	EndedAt   Time     `json:"ended_at"`
	Others    []string `json:"others" nullable:"false" doc:"Further tasks that run with the same call."`
}

// LockMark is something wrong with a lock.
type LockMark struct {
	Kind string `json:"kind" enum:"second_run,expired,stuck,too_short"`
	Text string `json:"text"`
}

// ReleaseBody names a lock to release.
type ReleaseBody struct {
	_ struct{} `additionalProperties:"false"`

	Key     string `json:"key" minLength:"1"`
	Version string `json:"version,omitempty" doc:"Version of the lock as it was seen; not needed for a dry run. If its value, expiry or holder has changed since, nothing is released."`
	Confirm string `json:"confirm,omitempty" doc:"Name of the task or, if unknown, the key again; not needed for a dry run."`
}

type releaseInput struct {
	SendOptions
	Body ReleaseBody
}

type listLocks struct {
	Name string `query:"name" doc:"Only locks of the task of this name."`
	Kind string `query:"kind" enum:"idempotent,celery-once,celery-singleton,other"`
	Mark string `query:"mark" enum:"second_run,expired,stuck,too_short" doc:"Only locks with this mark."`
}

type lockInput struct {
	Key string `path:"key" doc:"Key of the lock."`
}

func (a *api) fromLock(l locks.Lock) Lock {
	d := Lock{
		Key: l.Key, Kind: string(l.Kind), Name: text(l.Name), Fingerprint: text(l.Fingerprint), State: string(l.State), Problem: text(l.Problem),
		FirstSeenAt: timeOf(l.FirstSeenAt), AcquiredAt: timeOf(l.AcquiredAt), AcquiredFrom: text(l.AcquiredFrom),
		ExpiresAt: timeOf(l.ExpiresAt), Persistent: l.Persistent, GoneAt: timeOf(l.Gone), Version: l.Version,
		Marks: mapSlice(l.Marks, func(m locks.Mark) LockMark { return LockMark{Kind: string(m.Kind), Text: m.Text} }),
	}
	now := a.now()
	if !l.AcquiredAt.IsZero() {
		d.AgeSeconds = new(max(0, now.Sub(l.AcquiredAt).Seconds()))
	}
	if !l.Persistent && l.Gone.IsZero() {
		d.TTLSeconds = new(max(0, l.ExpiresAt.Sub(now).Seconds()))
	}
	if l.RunP99 > 0 {
		d.RunP99 = new(l.RunP99.Seconds())
	}
	if h := l.Holder; h != nil {
		d.Holder = &LockHolder{
			TaskID: h.TaskID, Certain: h.Certain, Status: string(h.Status), State: text(string(h.State)), Worker: text(h.Worker), Reason: text(h.Why),
			StartedAt: timeOf(h.StartedAt), EndedAt: timeOf(h.EndedAt), Others: append([]string{}, h.Others...),
		}
	}
	return d
}

// registerLocks adds the operations on locks.
func (a *api) registerLocks(h huma.API) {
	if a.commands == nil {
		return
	}
	huma.Register(h, operation(h, auth.ReadPayload, "list-locks", "/locks", "List locks"), a.locks)
	huma.Register(h, operation(h, auth.ReadPayload, "get-lock", "/locks/{key}", "Get a lock", notFound, unavailable), a.lock)
	service := a.service()
	if service == nil {
		return
	}
	release := postSend(h, auth.ReleaseLock, "release-lock", "/release", "Release a lock", notFound, conflict)
	registerSend(a, h, release, sendSteps[releaseInput, ReleaseBody, Preview]{
		request: func(_ context.Context, in *releaseInput) (ReleaseBody, error) { return in.Body, nil },
		preview: func(ctx context.Context, b ReleaseBody) (Preview, error) {
			p, _, err := service.PreviewRelease(ctx, b.Key)
			return fromPreview(p), err
		},
		send: func(ctx context.Context, by command.Caller, b ReleaseBody) (command.Receipt, error) {
			return service.Release(ctx, by, command.ReleaseRequest{Key: b.Key, Version: b.Version, Confirm: b.Confirm})
		},
	})
}

func (a *api) locks(ctx context.Context, r *listLocks) (*response[Locks], error) {
	body := Locks{Items: []Lock{}}
	if a.commands.Locks == nil {
		return &response[Locks]{body}, nil
	}
	s := a.commands.Locks.Snapshot(ctx)
	body.At, body.Source, body.Error, body.Scanning, body.More = timeOf(s.At), text(s.Source), text(s.Error), s.Scanning, s.More
	for _, l := range s.Locks {
		if (r.Name == "" || l.Name == r.Name) && (r.Kind == "" || string(l.Kind) == r.Kind) && (r.Mark == "" || l.Has(locks.MarkKind(r.Mark))) {
			body.Items = append(body.Items, a.fromLock(l))
		}
	}
	return &response[Locks]{body}, nil
}

func (a *api) lock(ctx context.Context, r *lockInput) (*response[Lock], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if a.commands.Locks == nil {
		return nil, problem(http.StatusNotFound, "No Redis with locks is configured.")
	}
	l, ok, err := a.commands.Locks.Find(ctx, r.Key)
	switch {
	case err != nil:
		return nil, problem(http.StatusServiceUnavailable, "The lock cannot be read: "+strings.TrimSuffix(err.Error(), ".")+".")
	case ok:
		return &response[Lock]{a.fromLock(l)}, nil
	}
	for _, l := range a.commands.Locks.Snapshot(ctx).Locks { // one that is gone while its task runs
		if l.Key == r.Key {
			return &response[Lock]{a.fromLock(l)}, nil
		}
	}
	return nil, problem(http.StatusNotFound, "There is no such lock: it was released or has expired.")
}
