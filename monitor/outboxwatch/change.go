package outboxwatch

import "context"

// Letter names a dead letter. Its id alone could be another's in a database that was restored, so the task must fit.
type Letter struct {
	ID     int64  `json:"id"`
	TaskID string `json:"task_id"`
}

// MaxLetters is how many dead letters one change is about.
const MaxLetters = 500

// Change is what became of dead letters that were to be requeued or purged. Those in neither list were no dead letters any
// longer: somebody else, or an earlier attempt whose outcome was lost, has moved or removed them.
type Change struct {
	Done []Letter // moved into the outbox, or removed
	// Waiting have a row in the outbox already, so that they were requeued before. Purging looks for none.
	Waiting []Letter
}

// Changer is a Source whose dead letters can be changed. Both methods do so in one transaction and take at most MaxLetters.
type Changer interface {
	// Requeue moves dead letters into the outbox, as the admin action of django-celery-outbox does. Each is moved once,
	// however many ask for it at the same time.
	Requeue(ctx context.Context, letters []Letter) (Change, error)
	// Purge removes dead letters.
	Purge(ctx context.Context, letters []Letter) (Change, error)
}

// Requeue moves dead letters of the outbox of a name into it. The error is ErrUnknownSource or an *Error.
func (w *Watcher) Requeue(ctx context.Context, name string, letters []Letter) (Change, error) {
	return w.change(name, func(c Changer) (Change, error) { return c.Requeue(ctx, letters) })
}

// Purge removes dead letters of the outbox of a name. Its errors are those of Requeue.
func (w *Watcher) Purge(ctx context.Context, name string, letters []Letter) (Change, error) {
	return w.change(name, func(c Changer) (Change, error) { return c.Purge(ctx, letters) })
}

func (w *Watcher) change(name string, f func(c Changer) (Change, error)) (Change, error) {
	s, err := w.Source(name)
	if err != nil {
		return Change{}, err
	}
	c, ok := s.(Changer)
	if !ok {
		return Change{}, &Error{Fault: FaultOther, Text: "The outbox " + name + " cannot be changed."}
	}
	defer w.Refresh(name)
	change, err := f(c)
	if err != nil {
		return Change{}, asError(err)
	}
	return change, nil
}
