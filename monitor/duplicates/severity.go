package duplicates

// WorstFirst returns all verdicts, those first that are most likely to have repeated an effect.
func WorstFirst() []Verdict {
	return []Verdict{Overlapping, Rerun, Redelivery, Resend, Retry, Skipped}
}
