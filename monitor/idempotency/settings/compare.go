package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// refusals finds tasks that some worker sends in a form that another one does not accept.
func refusals(groups []group) []Finding {
	senders := map[string]map[string]bool{} // serializers by task
	for g := range groups {
		for t := range groups[g].Tasks {
			task := &groups[g].Tasks[t]
			if s := groups[g].effective[t].serializer; s != "" {
				if senders[task.Name] == nil {
					senders[task.Name] = map[string]bool{}
				}
				senders[task.Name][s] = true
			}
		}
	}
	tasks, workers, missing := map[string]string{}, map[string]bool{}, map[string]bool{}
	for g := range groups {
		accepted := groups[g].list("accept_content")
		if len(accepted) == 0 {
			continue // unknown, or everything
		}
		for t := range groups[g].Tasks {
			name := groups[g].Tasks[t].Name
			for _, s := range sortedKeys(senders[name]) {
				if accepts(accepted, s) {
					continue
				}
				tasks[name], missing[s] = "sent as "+s+", accepted "+strings.Join(accepted, ", "), true
				for _, w := range groups[g].names {
					workers[w] = true
				}
			}
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	f := Finding{
		Cause: "serializer-refused", Effect: Lost, Risk: Exceeded, Title: "Tasks are sent in a form that workers refuse",
		Consequence: "A worker that receives a message in a form that is not in its accept_content logs an error and acknowledges it: the task is lost without an event.",
		Setting:     "accept_content", Value: "['json', '" + strings.Join(slices.DeleteFunc(sortedKeys(missing), func(s string) bool { return s == "json" }), "', '") + "']",
		Cost:    "With pickle, whoever may publish can run code in the workers; the alternative is task_serializer = 'json' for those who send.",
		Workers: sortedKeys(workers), Query: "state:pending sent:..-5m",
	}
	if missing["json"] {
		f.Value = "['json']"
	}
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		f.Tasks = append(f.Tasks, TaskFact{name, tasks[name]})
	}
	return []Finding{f}
}

// accepts reports whether a serializer is accepted, by name or content type.
func accepts(accepted []string, serializer string) bool {
	types := map[string]string{
		"json": "application/json", "pickle": "application/x-python-serialize", "yaml": "application/x-yaml", "msgpack": "application/x-msgpack",
	}
	return slices.ContainsFunc(accepted, func(a string) bool {
		return a == serializer || types[a] == serializer || types[serializer] == a
	})
}

// disagreements finds settings that workers have different values of, and attributes that tasks have on some workers only.
func disagreements(groups []group) []Finding {
	var list []Finding
	for _, name := range append(judged(), "visibility_timeout") {
		values := map[string][]string{}
		for i := range groups {
			if v, ok := groups[i].printed(name); ok {
				values[v] = append(values[v], groups[i].names...)
			}
		}
		if len(values) > 1 {
			list = append(list, disagreement(name, values, nil))
		}
	}
	return append(list, attributeDisagreements(groups)...)
}

// printed is a setting as it is shown, false if it is unknown.
func (w *Worker) printed(name string) (string, bool) {
	if name == "visibility_timeout" {
		if w.Transport != redis {
			return "", false
		}
		d := w.VisibilityTimeout
		if d <= 0 {
			d = defaultVisibilityTimeout
		}
		return short(d), true
	}
	v, ok := w.Conf[name]
	if !ok {
		return "", false
	}
	if name == "result_expires" {
		if d, ok := Expiry(v); ok && d > 0 {
			return short(d), true
		}
	}
	return python(v), true
}

// python writes JSON as Python would.
func python(v json.RawMessage) string {
	switch string(bytes.TrimSpace(v)) {
	case "null":
		return "None"
	case "true":
		return "True"
	case "false":
		return "False"
	}
	return strings.ReplaceAll(string(v), `"`, `'`)
}

func disagreement(name string, values map[string][]string, tasks []TaskFact) Finding {
	f := Finding{
		Cause: "differs-" + strings.ReplaceAll(name, "_", "-"), Effect: Other, Risk: Possible, Title: "Workers differ in " + name,
		Consequence: "What becomes of a task when something fails depends on which worker takes it.",
		Setting:     name, Cost: "Workers must be restarted. Different values are right for workers that share no task.", Tasks: tasks,
	}
	for _, v := range slices.Sorted(maps.Keys(values)) {
		workers := slices.Sorted(slices.Values(values[v]))
		f.Values = append(f.Values, Value{v, workers})
		f.Workers = append(f.Workers, workers...)
	}
	slices.Sort(f.Workers)
	f.Workers = slices.Compact(f.Workers)
	slices.SortStableFunc(f.Values, func(a, b Value) int { return cmp.Compare(len(b.Workers), len(a.Workers)) })
	return f
}

// attributeDisagreements finds attributes whose values differ between workers with equal settings: they run different code.
func attributeDisagreements(groups []group) []Finding {
	var list []Finding
	for _, c := range columns() {
		if c.setting == "" {
			continue
		}
		byTask := map[string]map[string][]int{} // groups by task and value
		for i := range groups {
			base := c.read(&groups[i].base)
			for t := range groups[i].Tasks {
				name, v := groups[i].Tasks[t].Name, c.read(&groups[i].effective[t])
				if v == base { // it has the setting of its worker
					v = ""
				}
				if byTask[name] == nil {
					byTask[name] = map[string][]int{}
				}
				byTask[name][v] = append(byTask[name][v], i)
			}
		}
		values := map[string]map[int]bool{}
		var tasks []TaskFact
		for _, name := range slices.Sorted(maps.Keys(byTask)) {
			if len(byTask[name]) < 2 {
				continue
			}
			tasks = append(tasks, TaskFact{Name: name})
			for value, indexes := range byTask[name] {
				value = cmp.Or(value, "as the setting")
				if values[value] == nil {
					values[value] = map[int]bool{}
				}
				for _, i := range indexes {
					values[value][i] = true
				}
			}
		}
		if len(tasks) == 0 {
			continue
		}
		shown := map[string][]string{}
		for v, indexes := range values {
			for i := range indexes {
				shown[v] = append(shown[v], groups[i].names...)
			}
		}
		f := disagreement(c.name, shown, tasks)
		f.Title = "The code of workers differs in the attribute " + c.name
		f.Cost = "Run the same version of the code on all workers that take the task."
		f.Cause = "attribute-" + strings.ReplaceAll(c.name, "_", "-")
		list = append(list, f)
	}
	return list
}
