package redact

import "strings"

// LockKey redacts the key of a lock of a task, which may end in arguments as celery-once spells them: amount-3_api_key-x. Where
// one ends is unknown, so all that follows a secret is hidden.
func (r *Redactor) LockKey(task, key, arguments string) string {
	if r == nil {
		return key
	}
	named := r.rulesOf(task)
	if head, ok := strings.CutSuffix(key, arguments); ok && arguments != "" {
		for _, i := range named {
			if rule := &r.rules[i]; rule.whole&(fieldArgs|fieldKwargs) != 0 || rule.position > 0 {
				rule.redacted.Add(1)
				return head + mask
			}
		}
		for at := 0; at < len(arguments); at++ {
			if rule := r.ruleOfArgument(arguments[:at], named); arguments[at] == '-' && rule != nil {
				rule.redacted.Add(1)
				return r.text(head, named) + r.text(arguments[:at], named) + "-" + mask
			}
		}
	}
	return r.text(key, named)
}

// ruleOfArgument returns the rule for the argument that s ends in the name of. What precedes it, and an underscore, may be the value
// of another.
func (r *Redactor) ruleOfArgument(s string, named []int) *activeRule {
	s = s[strings.LastIndexByte(s, '-')+1:]
	s = s[max(0, len(s)-maxKey):]
	for {
		if rule := r.keyRule(s, named); rule != nil {
			return rule
		}
		_, rest, ok := strings.Cut(s, "_")
		if !ok {
			return nil
		}
		s = rest
	}
}
