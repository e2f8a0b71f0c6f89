package templates_test

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func duplicateScenes() map[string]scene {
	section := templates.SectionDuplicates
	hostile := templates.Duplicate{DuplicateGroup: duplicateHostile()}
	return map[string]scene{
		"duplicates":      {layout(section, "/duplicates"), duplicateList()},
		"duplicates-none": {dark(layout(section, "/duplicates")), duplicatesNone()},
		"duplicates-filtered": {layout(section, "/duplicates?verdict=skipped"), func() templates.Duplicates {
			v := duplicateList()
			v.Groups, v.Verdict, v.Name, v.Most, v.Older = nil, duplicates.Skipped, "x", true, ""
			v.Sorts = templates.DuplicateSorts{Newest: "/ops/duplicates?name=x&verdict=skipped"}
			return v
		}()},
		"duplicates-then": {past(layout(section, "/duplicates")), func() templates.Duplicates {
			v := duplicateList()
			v.Then = true
			return v
		}()},
		"duplicates-then-none":  {past(layout(section, "/duplicates")), templates.Duplicates{Then: true, Older: "/ops/duplicates?cursor=x"}},
		"duplicates-unreadable": {layout(section, "/duplicates"), templates.Duplicates{Unreadable: true}},
		"duplicate":             {layout(section, templates.DuplicatePath(duplicateOverlap().Key)), templates.Duplicate{DuplicateGroup: duplicateOverlap()}},
		"duplicate-sent-twice":  {dark(layout(section, "/duplicates/x")), templates.Duplicate{DuplicateGroup: duplicateResend()}},
		"duplicate-hostile":     {layout(section, "/duplicates/x"), hostile},
		"duplicate-rules": {layout(section, "/duplicates/rules"), templates.DuplicateRules{
			Saved: "billing.charge",
			Rules: []history.DuplicateRule{
				{Name: "billing.charge", Exclude: []string{"request_id", "order.at"}, At: at(0), Actor: "ada", Pending: 1200},
				{Name: evil, Exclude: []string{`["` + evil + `"]`}, At: at(0)},
			},
		}},
		"duplicate-rules-none": {layout(section, "/duplicates/rules"), templates.DuplicateRules{}},
		"exclude":              {layout(section, ""), excludeForm(nil)},
		"exclude-preview":      {layout(section, ""), excludeForm(excludePreview())},
		"exclude-nothing":      {layout(section, ""), excludeForm(&command.DuplicateRulePreview{Tasks: 12, Complete: true})},
	}
}

func verdictChoices() []templates.DuplicateChoice {
	list := []templates.DuplicateChoice{{Href: "/ops/duplicates"}}
	for _, v := range duplicates.WorstFirst() {
		list = append(list, templates.DuplicateChoice{Verdict: v, Href: "/ops/duplicates?verdict=" + string(v)})
	}
	return list
}

func duplicateList() templates.Duplicates {
	return templates.Duplicates{
		Groups: []templates.DuplicateGroup{duplicateOverlap(), duplicateResend(), duplicateSameCall(), duplicateScheduled(), duplicateHostile()},
		Stats: history.DuplicateStats{
			Tasks: 812_440, Groups: 310, Grouped: 1_204, Ungrouped: 52, Pending: 12_000,
			UngroupedNames: []history.NameCount{{Name: "reports.build", N: 50}, {N: 1}, {Name: evil, N: 1}},
		},
		Verdicts: verdictChoices(), Rules: 2, All: "/ops/duplicates", Older: "/ops/duplicates?cursor=abc", Newest: "/ops/duplicates",
		Sorts: templates.DuplicateSorts{Tasks: "/ops/duplicates?sort=tasks"},
	}
}

func duplicatesNone() templates.Duplicates {
	return templates.Duplicates{
		Stats: history.DuplicateStats{Tasks: 812_440, Ungrouped: 1_204}, Verdicts: verdictChoices(), All: "/ops/duplicates",
		Sorts: templates.DuplicateSorts{Tasks: "/ops/duplicates?sort=tasks"},
	}
}

func callKey(s string) history.DuplicateKey {
	call, _ := state.ParseCallID(s)
	return history.DuplicateKey{Call: call}
}

// duplicateOverlap is a charge that ran twice at the same time, and once more since.
func duplicateOverlap() templates.DuplicateGroup {
	first := duplicates.Run{
		TaskID: "7d1e6a52-0000-4000-8000-000000000002", Worker: "celery@a", PID: 41, State: state.Success,
		SentAt: noon, ReceivedAt: noon + second, StartedAt: noon + 2*second, EndedAt: noon + 5*second,
	}
	second := duplicates.Run{
		TaskID: "7d1e6a52-0000-4000-8000-000000000012", Worker: "celery@b", PID: 42, State: state.Success,
		ReceivedAt: noon + second, StartedAt: noon + 3*second, EndedAt: noon + 7*second,
	}
	third := duplicates.Run{TaskID: "7d1e6a52-0000-4000-8000-000000000013", Worker: "celery@b", State: state.Started, ReceivedAt: noon + 60e6, StartedAt: noon + 61e6}
	other := succeeded()
	other.ID = second.TaskID
	return templates.DuplicateGroup{
		Call: `[1042] {"currency":"EUR","token":"********"}`,
		DuplicateGroup: view.DuplicateGroup{
			DuplicateGroup: history.DuplicateGroup{
				Key: callKey("0dd7dc58725190cd0dd7dc58725190cd"), Name: "billing.tasks.charge", N: 3,
				Marks: state.Overlapping | state.Rerun, Oldest: at(0), Newest: at(60e6), Tasks: []state.Task{other, succeeded()},
			},
			Excluded: []string{"request_id"}, Partial: true, WastedSeconds: 2,
			Verdicts: map[duplicates.Verdict]int{duplicates.Overlapping: 1, duplicates.Rerun: 1},
			Pairs: []duplicates.Pair{
				{Verdict: duplicates.Rerun, First: second, Second: third, Proved: true, Evidence: []duplicates.Fact{
					{Kind: duplicates.FactEnded, Text: "It ended as SUCCESS.", At: noon + 7e6, Task: second.TaskID},
				}},
				{Verdict: duplicates.Overlapping, First: first, Second: second, WastedSeconds: 2, Evidence: []duplicates.Fact{
					{Kind: duplicates.FactOverlap, Text: "Both ran for 2.0 s."},
					{Kind: duplicates.FactClocks, Text: "The clock of celery@b is not known."},
				}},
			},
		},
	}
}

// duplicateResend is a task that was sent twice, whose arguments are not known.
func duplicateResend() templates.DuplicateGroup {
	return templates.DuplicateGroup{DuplicateGroup: view.DuplicateGroup{
		DuplicateGroup: history.DuplicateGroup{
			Key: history.DuplicateKey{TaskID: "7d1e6a52/1"}, N: 1, Marks: state.Resend, Oldest: at(0), Newest: at(0), Tasks: []state.Task{sent()},
		},
		Verdicts: map[duplicates.Verdict]int{duplicates.Resend: 1},
		Pairs: []duplicates.Pair{{
			Verdict: duplicates.Resend, Proved: true,
			First:    duplicates.Run{TaskID: "7d1e6a52/1", SentAt: noon, Client: "gen7@web"},
			Second:   duplicates.Run{TaskID: "7d1e6a52/1", SentAt: noon + second, ReceivedAt: noon + 2*second, Client: "gen8@web", Attempt: 1},
			Evidence: []duplicates.Fact{{Kind: duplicates.FactSent, Text: "gen8@web sent it again 1.0 s later."}},
		}},
	}}
}

// duplicateSameCall is two tasks of which no run is known to repeat another.
func duplicateSameCall() templates.DuplicateGroup {
	return templates.DuplicateGroup{Call: "[]", DuplicateGroup: view.DuplicateGroup{DuplicateGroup: history.DuplicateGroup{
		Key: callKey("11111111111111111111111111111111"), Name: "reports.build", N: 2, Oldest: at(0), Newest: at(second),
	}}}
}

func duplicateHostile() templates.DuplicateGroup {
	run := duplicates.Run{TaskID: evil, Worker: evil, State: state.State(strings.ToUpper(evil)), Client: evil, StartedAt: 1, EndedAt: -1}
	g := templates.DuplicateGroup{Call: evil + strings.Repeat("A", 1<<16), DuplicateGroup: view.DuplicateGroup{
		DuplicateGroup: history.DuplicateGroup{
			Key: history.DuplicateKey{TaskID: evil}, Name: evil, N: 1_000_000, Marks: state.AllDuplicates, Tasks: []state.Task{hostile()},
		},
		Excluded: []string{evil}, WastedSeconds: 1e300, Verdicts: map[duplicates.Verdict]int{duplicates.Verdict(evil): 1},
	}}
	for range 40 {
		g.Pairs = append(g.Pairs, duplicates.Pair{
			Verdict: duplicates.Verdict(evil), First: run, Second: run, Evidence: []duplicates.Fact{{Kind: duplicates.FactKind(evil), Text: evil}},
		})
	}
	return g
}

func excludePreview() *command.DuplicateRulePreview {
	return &command.DuplicateRulePreview{
		Tasks: 2_000, Ungrouped: 4, Before: command.DuplicateRuleEffect{Groups: 1, Grouped: 2}, After: command.DuplicateRuleEffect{Groups: 40, Grouped: 98},
		Samples: []command.DuplicateRuleSample{
			{Tasks: 5, IDs: []string{"7d1e6a52-0000-4000-8000-000000000002", "7d1e6a52-0000-4000-8000-000000000012"}, Args: "[1042]", Kwargs: `{"currency":"EUR"}`},
			{Tasks: 2, IDs: []string{evil}, Args: "[]", Kwargs: evil},
		},
	}
}

func excludeForm(groups *command.DuplicateRulePreview) templates.Form {
	v := templates.Form{
		Section: templates.SectionDuplicates, Title: "Exclude fields", Path: "/act/exclude", Button: "Save", Token: "T0KEN",
		Crumbs: []templates.Link{{Text: "Duplicates", Href: "/ops/duplicates"}},
		Fields: []templates.Input{
			{Name: "name", Field: "name", Label: "Task name", Value: "billing.tasks.charge", Required: true},
			{Name: "fields", Field: "exclude", Label: "Fields", Kind: templates.InputArea, Value: "request_id\norder.at", Hint: "One per line."},
		},
	}
	if groups != nil {
		v.Preview = &templates.Preview{Preview: command.Preview{Summary: "Compare without request_id"}, Groups: groups}
		v.Change = "/ops/act/exclude?name=billing.tasks.charge"
	}
	return v
}

// duplicateScheduled is a call that a schedule sends.
func duplicateScheduled() templates.DuplicateGroup {
	return templates.DuplicateGroup{Call: "[]", DuplicateGroup: view.DuplicateGroup{
		DuplicateGroup: history.DuplicateGroup{
			Key: callKey("2dd7dc58725190cd0dd7dc58725190cd"), Name: "carts.expire", N: 92, Marks: state.Rerun, Oldest: at(0), Newest: at(60e6),
		},
		Period: 10 * time.Second, Partial: true, Verdicts: map[duplicates.Verdict]int{duplicates.Rerun: 9},
	}}
}
