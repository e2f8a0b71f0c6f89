package history

import (
	"context"
	"errors"
	"time"
)

// Bounds of what is stored about alerts.
const (
	MaxAlertRules        = 100
	MaxAlertFirings      = 10_000              // the oldest that have ended go
	AlertFiringRetention = 90 * 24 * time.Hour // after they ended
	AlertRecordRetention = 10 * 24 * time.Hour
)

// ErrTooManyAlertRules is returned when a rule is created beyond MaxAlertRules.
var ErrTooManyAlertRules = errors.New("too many alert rules")

// AlertRule is a rule by which Umbel alerts.
type AlertRule struct {
	ID         int64 // 0 if it is not stored yet
	Name       string
	Enabled    bool
	Definition []byte   // JSON, of package alert
	Receivers  []string // names of those that are notified
	MutedUntil time.Time
	MutedBy    string // user
	SavedAt    time.Time
	SavedBy    string // user
}

// Muted reports whether nobody is notified of a rule.
func (r AlertRule) Muted(now time.Time) bool { return now.Before(r.MutedUntil) }

// AlertFiring is a time during which a rule fired.
type AlertFiring struct {
	ID             int64
	RuleID         int64
	RuleName       string // as it was then
	Subject        string
	Start          time.Time
	End            time.Time // zero while it fires
	Value          float64
	Evidence       []byte // JSON, of package alert
	Notified       bool   // that it began
	AcknowledgedAt time.Time
	AcknowledgedBy string // user
}

// AlertUpdate is what one evaluation changes. It is written in one transaction.
type AlertUpdate struct {
	At time.Time
	// Record of the log, written by package alert; empty if there is none, ignored if there is one of that time. Later ones are
	// removed: the clock was set back, and their time comes again.
	Record   []byte
	Began    []AlertFiring
	Ended    []int64 // IDs of firings that end at At
	Notified []int64 // IDs of earlier firings that are notified now
	// Commands are enqueued as Enqueue does, without an audit record: nobody asked for them.
	Commands []Command
}

// AlertFilter selects firings for a list, newest first.
type AlertFilter struct {
	Open   bool      // that have not ended
	Ended  bool      // that have
	RuleID int64     // 0 is any
	At     time.Time // Open and Ended as of then, without what began later; zero is now
	Before int64     // ID, 0 is from the newest
	Limit  int       // 1 to 500
}

// Alerts stores rules, firings, and the log of records that rules are judged by.
type Alerts interface {
	// AlertRules returns all rules, by name.
	AlertRules(ctx context.Context) ([]AlertRule, error)
	// SaveAlertRule creates a rule, if it has no ID, or replaces all of it but how it is muted. The error is
	// ErrTooManyAlertRules or ErrNotFound.
	SaveAlertRule(ctx context.Context, r AlertRule) (AlertRule, error)
	// DeleteAlertRule removes a rule and ends its firings, ErrNotFound if there is none.
	DeleteAlertRule(ctx context.Context, id int64, at time.Time) error
	// MuteAlertRule notifies nobody of a rule until a time, zero for now; ErrNotFound if there is none.
	MuteAlertRule(ctx context.Context, id int64, until time.Time, actor string) error
	// AlertFirings returns a page of firings, and the Before of the next one, 0 at the end.
	AlertFirings(ctx context.Context, f AlertFilter) (list []AlertFiring, next int64, err error)
	// AcknowledgeAlert records who looks after a firing; ErrNotFound if there is none. The first one stays.
	AcknowledgeAlert(ctx context.Context, id int64, at time.Time, actor string) error
	// AlertRecords calls f with every record of the log from a time on, oldest first. f must not call the store.
	AlertRecords(ctx context.Context, from time.Time, f func(record []byte) error) error
	// UpdateAlerts writes an update, and removes what is too old.
	UpdateAlerts(ctx context.Context, u AlertUpdate) error
}
