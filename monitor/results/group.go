package results

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// GroupReader is a Backend that tells of groups by their ids.
type GroupReader interface {
	// Group returns what is stored of a group, ErrMissing if that is nothing.
	Group(ctx context.Context, id string) (StoredGroup, error)
}

// StoredGroup is what a backend has of a group.
type StoredGroup struct {
	Members []string // ids of its tasks and of the groups in it, none unless the group was saved
	Size    int      // tasks in the header of a chord whose body has not been sent yet, 0 if unknown
}

// ReadGroup returns what b has of a group, ErrMissing if that is nothing.
func ReadGroup(ctx context.Context, b Backend, id string) (StoredGroup, error) {
	r, ok := unwrapped(b).(GroupReader)
	if !ok {
		return StoredGroup{}, ErrMissing
	}
	return r.Group(ctx, id) //nolint:wrapcheck // it says what failed
}

// ParseGroup returns the members of a group that key-value backends have saved. Serializers other than Parse reads make none.
func ParseGroup(id string, b []byte) ([]string, error) {
	text, _, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode group: %w", err)
	}
	var saved struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		return nil, fmt.Errorf("decode group: %w", err)
	}
	var r Result
	r.setChildren(slices.Concat([]byte("["), saved.Result, []byte("]")))
	for _, g := range r.Groups {
		if g.ID == id {
			return g.Members, nil
		}
	}
	return nil, nil
}
