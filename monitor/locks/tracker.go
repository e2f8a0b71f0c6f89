package locks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	sameExpiry = time.Second // two readings of one expiry differ by less
	maxGone    = 1_000       // locks remembered that are gone while their task runs
	maxTasks   = 8           // remembered with the call of a lock
	goneAfter  = 2 * time.Second
	keepProof  = 10 * time.Minute // how long a second run is shown
	endedAfter = 5 * time.Second  // before a lock whose task has ended is stuck: its release may be on the way
)

// record is a lock as it is remembered from one reading to the next.
type record struct {
	entry     Entry
	id        identity
	content   content
	firstSeen time.Time
	expiresAt time.Time // zero if it does not expire; the same while readings agree
	renewed   bool      // its expiry has moved while its task ran

	tasks    []string // ids of tasks with its call, running ones first
	searched bool     // the history was asked for the task that it names
	holder   *Holder
	p99      time.Duration

	endedSeen time.Time // when its task was first seen to have ended
	unseen    bool      // the lock was gone before anybody watched
	goneAt    time.Time // when the lock was found to be gone while its task ran
	provedAt  time.Time // when another run was found to have started since
	second    string    // id of that run, empty if unknown
}

// tracker remembers locks. It is not safe for concurrent use.
type tracker struct {
	options Options
	records map[string]*record // by key
	gone    map[string]*record // by key: the lock is gone, or another's, while its task runs
	calls   map[string]call    // of tasks, by id
	runs    map[string]runTime // by name of the task
	offset  int                // of the names whose tasks are read next
	cursor  Cursor
	scanned bool // all keys have been examined once
	// lockless are running tasks whose locks are not among the records, by the key that they should have.
	lockless map[string]state.Task
	full     bool
	secret   []byte
}

func newTracker(o Options) *tracker {
	return &tracker{options: o, secret: newSecret(), records: make(map[string]*record), gone: make(map[string]*record), calls: make(map[string]call), runs: make(map[string]runTime), lockless: make(map[string]state.Task)}
}

// read reads all locks that are known, looks for others, and finds out who holds them.
func (t *tracker) read(ctx context.Context) (Snapshot, error) {
	if err := t.reread(ctx); err != nil {
		return Snapshot{}, err
	}
	if err := t.scan(ctx); err != nil {
		return Snapshot{}, err
	}
	all := make([]*record, 0, len(t.records)+len(t.gone))
	for _, r := range t.records {
		all = append(all, r)
	}
	for _, r := range t.gone {
		all = append(all, r)
	}
	if err := t.resolve(ctx, all); err != nil {
		return Snapshot{}, err
	}
	if err := t.noteLockless(ctx); err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{More: t.full, Scanning: !t.scanned}
	now := t.options.Now()
	for _, r := range t.records {
		s.Locks = append(s.Locks, t.lock(r, now))
	}
	for key, r := range t.gone {
		switch {
		case !r.goneShown(now):
		case t.over(r, now):
			delete(t.gone, key)
		default:
			s.Locks = append(s.Locks, t.lock(r, now))
		}
	}
	sortLocks(s.Locks)
	return s, nil
}

// noteLockless notes tasks that run without their lock, which has expired or was deleted before anybody watched.
func (t *tracker) noteLockless(ctx context.Context) error {
	defer clear(t.lockless)
	for key := range t.lockless {
		if t.gone[key] != nil || t.records[key] != nil || t.full {
			delete(t.lockless, key)
		}
	}
	if err := t.update(ctx, slices.Collect(maps.Keys(t.lockless))); err != nil {
		return err
	}
	now := t.options.Now()
	for key, task := range t.lockless {
		h := run(Idempotent, &task, nil)
		if t.records[key] != nil || len(t.gone) >= maxGone || h.Status != Running || now.Sub(h.StartedAt) < realAfter {
			continue
		}
		t.gone[key] = &record{
			entry: Entry{Key: key}, id: identify(key, nil), content: content{state: Processing}, firstSeen: now, tasks: []string{task.ID},
			holder: &h, goneAt: now, unseen: true,
		}
	}
	return nil
}

// reread reads the keys that are known.
func (t *tracker) reread(ctx context.Context) error {
	keys := make([]string, 0, len(t.records)+len(t.gone))
	for key := range t.records {
		keys = append(keys, key)
	}
	for key := range t.gone {
		if t.records[key] == nil {
			keys = append(keys, key)
		}
	}
	return t.update(ctx, keys)
}

// scan looks for keys that are not known, in bounded steps, and goes on there the next time.
func (t *tracker) scan(ctx context.Context) error {
	start := t.options.Now()
	var fresh []string
	for range scanSteps {
		keys, next, err := t.options.Source.Scan(ctx, t.cursor)
		if err != nil {
			t.cursor = nil
			return err
		}
		for _, key := range keys {
			if t.records[key] == nil && !slices.Contains(fresh, key) {
				fresh = append(fresh, key)
			}
		}
		t.full = len(t.records)+len(fresh) > MaxLocks
		t.cursor = next
		if next == nil {
			t.scanned = true
			break
		}
		if t.full || t.options.Now().Sub(start) > scanTime {
			break
		}
	}
	return t.update(ctx, fresh[:min(len(fresh), max(0, MaxLocks-len(t.records)))])
}

// update reads keys and notes what has changed.
func (t *tracker) update(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	entries, err := t.options.Source.Read(ctx, keys)
	if err != nil {
		return err
	}
	now, names := t.options.Now(), t.names(keys)
	for _, e := range entries {
		t.note(e, names, now)
	}
	return nil
}

// note notes one entry.
func (t *tracker) note(e Entry, names map[string]bool, now time.Time) {
	r := t.records[e.Key]
	if e.Missing {
		if r != nil {
			delete(t.records, e.Key)
			t.lost(r, now)
		}
		return
	}
	id := identify(e.Key, names)
	fresh := &record{entry: e, id: id, content: id.kind.read(e), firstSeen: now}
	if e.TTL >= 0 {
		fresh.expiresAt = now.Add(e.TTL)
	}
	if r == nil {
		t.records[e.Key] = fresh
		return
	}
	moved := r.expiresAt.IsZero() != fresh.expiresAt.IsZero() || fresh.expiresAt.Sub(r.expiresAt).Abs() >= sameExpiry
	switch same := r.entry.Value == e.Value && r.entry.Other == e.Other; {
	case same && !moved:
		r.entry, r.id = e, id
	case same && r.active(): // its task has extended it
		r.entry, r.expiresAt, r.renewed = e, fresh.expiresAt, true
	default:
		if fresh.content.state != Completed {
			t.lost(r, now)
		}
		fresh.tasks = r.tasks
		t.records[e.Key] = fresh
	}
}

// active reports whether the lock belongs to a task that ran when it was read last.
func (r *record) active() bool {
	return r.holder != nil && r.holder.Status.Active() && (r.content.state == Processing || r.content.state == Held)
}

// lost notes that a lock is gone. Its task may still run.
func (t *tracker) lost(r *record, now time.Time) {
	former := t.gone[r.entry.Key]
	switch {
	case !r.active():
	case former != nil && former.holder != nil && former.holder.Status.Active() && former.holder.TaskID != r.holder.TaskID:
		former.provedAt, former.second = now, r.holder.TaskID // both run, and neither has a lock
	case len(t.gone) < maxGone:
		r.goneAt = now
		t.gone[r.entry.Key] = r
	}
}

// goneShown reports whether a lock has been gone for long enough: the event of the end of its task may come later.
func (r *record) goneShown(now time.Time) bool { return now.Sub(r.goneAt) >= goneAfter }

// over reports whether a lock that is gone needs to be shown no longer. It looks for a second run.
func (t *tracker) over(r *record, now time.Time) bool {
	active := r.holder != nil && r.holder.Status.Active()
	if r.provedAt.IsZero() && active {
		r.second = t.secondRun(r)
		if again := t.records[r.entry.Key]; r.second != "" || again != nil && again.content.state != Completed {
			r.provedAt = now
		}
	}
	if r.provedAt.IsZero() {
		return !active
	}
	return !active && now.Sub(r.provedAt) > keepProof
}

// secondRun returns another task with the same call that has started since the lock was gone, empty if none.
func (t *tracker) secondRun(r *record) string {
	if len(r.holder.Others) > 0 {
		return r.holder.Others[0]
	}
	if again := t.records[r.entry.Key]; again != nil && again.holder != nil && again.holder.TaskID != r.holder.TaskID {
		return again.holder.TaskID
	}
	return ""
}

// find reads one lock.
func (t *tracker) find(ctx context.Context, key string) (Lock, bool, error) {
	key = t.storedKey(key)
	keep := t.records[key] != nil || len(t.records) < MaxLocks
	if err := t.update(ctx, []string{key}); err != nil {
		return Lock{}, false, err
	}
	r := t.records[key]
	if r == nil {
		return Lock{}, false, nil
	}
	if !keep {
		defer delete(t.records, key)
	}
	if err := t.resolve(ctx, []*record{r}); err != nil {
		return Lock{}, false, err
	}
	return t.lock(r, t.options.Now()), true, nil
}

// lock returns what is known of a record.
func (t *tracker) lock(r *record, now time.Time) Lock {
	l := Lock{
		Key: t.keyShown(r), stored: r.entry, Kind: r.id.kind, Name: r.id.name, Fingerprint: r.id.fingerprint, State: r.content.state, Value: t.options.Redactor.Text(r.entry.Value),
		FirstSeenAt: r.firstSeen, ExpiresAt: r.expiresAt, Persistent: r.expiresAt.IsZero(), Holder: r.holder, RunP99: r.p99, Gone: r.goneAt,
	}
	switch {
	case r.entry.Other:
		l.Problem = "Its value is not a string."
	case r.entry.Long:
		l.Problem = fmt.Sprintf("Its value is longer than %d bytes.", MaxValue)
	case r.content.state == UnknownState && r.id.kind == Idempotent:
		l.Problem = "Its value is neither processing nor completed."
	}
	l.AcquiredAt, l.AcquiredFrom = t.acquired(r, now)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", r.entry.Value, r.expiresAt.UnixMilli(), l.holderID()))
	l.Version = hex.EncodeToString(sum[:8])
	l.Marks = t.marks(r, &l, now)
	return l
}

// acquired returns when a lock was taken, or completed, and how that is known.
func (t *tracker) acquired(r *record, now time.Time) (time.Time, string) {
	if h := r.holder; h != nil && h.Status != UnknownHolder {
		at := h.StartedAt
		switch r.content.state {
		case Completed:
			at = h.EndedAt
		case Held:
			at = h.SentAt
		case Processing, UnknownState:
		}
		if !at.IsZero() {
			return earlier(at, now), AcquiredTask
		}
	}
	return t.acquiredByTTL(r)
}

// acquiredByTTL returns when a lock was taken, or completed, if it had the usual TTL.
func (t *tracker) acquiredByTTL(r *record) (time.Time, string) {
	usual := t.options.LockTTL
	if r.content.state == Completed {
		usual = t.options.CompletionTTL
	}
	if r.id.kind != Idempotent || r.content.state == UnknownState || r.expiresAt.IsZero() || r.renewed || usual < 0 {
		return time.Time{}, ""
	}
	at := r.expiresAt.Add(-usual)
	if at.After(r.firstSeen.Add(sameExpiry)) {
		return time.Time{}, "" // its TTL is another one
	}
	return earlier(at, r.firstSeen), AcquiredTTL
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
