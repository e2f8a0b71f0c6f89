package command

import (
	"encoding/json"
	"slices"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/remote"
)

// serializerOf returns how a task's messages are written as far as its workers have reported it: by the serializer of its
// class, or the task_serializer that all of them have. It is empty if that is not known, and JSON if it is pickle
// or differs.
func (s *Service) serializerOf(name string) celery.Serializer {
	found := celery.Serializer("")
	for _, w := range s.Inspector.CachedSettings() {
		i := slices.IndexFunc(w.Tasks, func(t remote.RegisteredTask) bool { return t.Name == name })
		if i < 0 {
			continue
		}
		text := w.Tasks[i].Info["serializer"]
		if (text == "" || text == "None") && json.Unmarshal(w.Conf["task_serializer"], &text) != nil || text == "" {
			continue
		}
		one := celery.Serializer(text)
		if !slices.Contains(celery.Serializers(), one) || found != "" && found != one {
			return celery.JSON
		}
		found = one
	}
	return found
}

// asWritten returns the serializer of a message whose own is known, so that a retry does not take that of its task.
func (s *Service) asWritten(name string, by celery.Serializer) celery.Serializer {
	if usual := s.serializerOf(name); by == "" && usual != "" {
		return celery.JSON
	}
	return by
}
