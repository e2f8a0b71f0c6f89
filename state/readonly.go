package state

// View is a Cluster for readers, without the methods that change it. It returns copies.
type View interface {
	Clock() int64
	Counts() Counts
	Names() []string
	Tasks(q Query) Page
	Task(id string) (Task, bool)
	TaskEvents(id string) []TaskEvent
	Workers() []Worker
	Worker(name string) (Worker, bool)
	OffsetHistory(worker string) []OffsetPoint
	Restarts(since int64) []Restart
	Elapsed(from, to Moment) (Elapsed, bool)
	Waited(t *Task) (Elapsed, bool)
	Liveness() []Liveness
	Prefetched() []Prefetched
	Unfinished(worker string) int
	Evicted() uint64
	LowWaterMark() *Position
	Changed(id string) bool
	UnsavedTasks(from *Position, newer bool, n int) []Task
	UnsavedEvents(n int) map[string][]byte
	UnsavedOf(root string, n int) []string
}

var _ View = (*Cluster)(nil)
