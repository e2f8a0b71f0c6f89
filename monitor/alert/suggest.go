package alert

// Suggestion is a rule that may be worth having, until somebody enables it.
type Suggestion struct {
	Name string
	Why  string // one sentence
	Rule Rule
}

// Suggestions returns rules for most clusters.
func Suggestions() []Suggestion {
	list := []Suggestion{
		{"Many failures", "A deployment or a dependency broke one kind of task.", Rule{Kind: Threshold, Measure: FailureShare, Limit: 20, Window: 900, Per: PerName, Least: 10}},
		{"Slow start", "Tasks wait for too few workers, or for ones that hold more than they run.", Rule{Kind: Threshold, Measure: WaitP95, Limit: 60, Window: 300, For: 300}},
		{"Deaf worker", "A worker lost its connection to the queues, but not the one for events: Celery shows it as online.", Rule{Kind: DeafWorker, For: 300}},
		{"Stuck queue", "No worker consumes from a queue, or none can.", Rule{Kind: StuckQueue, For: 600}},
		{"Overdue run", "A task hangs: it holds its slot and nothing fails.", Rule{Kind: OverdueRun, Factor: 5}},
		{"Silent schedule", "Celery beat stopped, or lost an entry. Needs task_send_sent_event.", Rule{Kind: SilentSchedule, Factor: 2}},
		{"Wrong clock", "A host does not keep its time: what it logs and schedules is off.", Rule{Kind: ClockOffset, Limit: 1, For: 300}},
	}
	for i := range list {
		list[i].Rule, _ = list[i].Rule.Check() // they are valid
	}
	return list
}
