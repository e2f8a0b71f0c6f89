package api

import "time"

// ClusterTask is a task of one of several clusters.
type ClusterTask struct {
	Cluster string `json:"cluster"`

	Task
}

// Cluster is one of several that an Umbel watches.
type Cluster struct {
	Name           string     `json:"name"`
	Path           string     `json:"path"`      // of its pages; its API is below
	Available      bool       `json:"available"` // false if its history cannot be opened
	Error          string     `json:"error,omitempty"`
	Remote         bool       `json:"remote"`            // another Umbel watches it, and path is the URL of that one
	SeenAt         *time.Time `json:"seen_at,omitempty"` // when that one has last answered
	Level          string     `json:"level"`             // as of Status
	Sentence       string     `json:"sentence"`
	Ready          bool       `json:"ready"`
	Connected      bool       `json:"connected"` // to the broker
	TasksPerSecond float64    `json:"tasks_per_second"`
	FailedShare    *float64   `json:"failed_share"` // of tasks that ended in the last ten minutes, null if none did
	WorkersOnline  int        `json:"workers_online"`
	Backlog        *int64     `json:"backlog"` // messages that wait in queues, null if it is not known
}
