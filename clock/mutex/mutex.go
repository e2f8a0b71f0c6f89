package mutex

import (
	"context"
	"errors"
	"sync"
)

// Sender sends messages to other processes. The messages of one process to another must arrive in the order in which they are
// sent, none lost. Send is called from one goroutine at a time and must not call the Mutex.
type Sender interface {
	Send(m Message) error
}

// Mutex is a lock that processes share. It is safe for concurrent use; goroutines of one process take turns.
type Mutex struct {
	sender Sender
	turn   chan struct{} // holds one element while a goroutine has or wants the lock

	mu      sync.Mutex // guards the process, and the order of what it sends
	process *Process
	granted chan struct{} // closed when the lock is granted; nil while no Lock has requested it
}

// NewMutex returns a lock over a process, which it owns from then on. The process must not have requested the lock.
func NewMutex(p *Process, s Sender) *Mutex {
	return &Mutex{sender: s, turn: make(chan struct{}, 1), process: p}
}

// Lock waits for the lock. If ctx ends first, or a message could not be sent, it withdraws the request and returns the error.
func (m *Mutex) Lock(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	granted, err := m.request()
	if granted == nil {
		<-m.turn
		return err
	}
	if err == nil {
		select {
		case <-granted:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	m.withdraw(granted)
	return err
}

// request returns a nil channel if there is no request after it.
func (m *Mutex) request() (granted <-chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, err := m.process.Request()
	if err != nil {
		return nil, err
	}
	m.granted = make(chan struct{})
	return m.granted, m.do(out)
}

// withdraw ends the request that granted belongs to, whether it was granted or not.
func (m *Mutex) withdraw(granted <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.granted == granted {
		_ = m.release() // Lock's error says more
	}
}

// Unlock releases the lock. It returns ErrNotRequested if nobody has it here, or the error of a message that could not be sent:
// the lock is released all the same.
func (m *Mutex) Unlock() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.granted == nil || !m.process.Held() {
		return ErrNotRequested
	}
	return m.release()
}

// release ends the request of a Lock. The caller holds mu.
func (m *Mutex) release() error {
	out, err := m.process.Release()
	if err != nil {
		return err
	}
	m.granted = nil
	err = m.do(out)
	<-m.turn
	return err
}

// Deliver takes a message that another process has sent. Its errors are those of Process.Receive, and those of sending a response.
func (m *Mutex) Deliver(message Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, err := m.process.Receive(message)
	if err != nil {
		return err
	}
	return m.do(out)
}

// Suspect makes the lock wait for a process that may have crashed, until Trust.
func (m *Mutex) Suspect(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.process.Suspect(name)
}

// Trust withdraws a suspicion.
func (m *Mutex) Trust(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.do(m.process.Trust(name))
}

// Waiting returns the processes that Lock waits to hear from.
func (m *Mutex) Waiting() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process.Waiting()
}

// do sends what the process wants sent and wakes the goroutine that has the lock. One message that cannot be sent keeps none from
// the other processes, which would miss it. The caller holds mu.
func (m *Mutex) do(out Output) (err error) {
	if out.Granted && m.granted != nil {
		close(m.granted)
	}
	for _, message := range out.Send {
		err = errors.Join(err, m.sender.Send(message))
	}
	return err
}
