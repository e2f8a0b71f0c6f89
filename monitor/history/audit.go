package history

import (
	"context"
	"time"
)

// AuditKind is what an audit record is about.
type AuditKind string

// Kinds of audit records. Those that earlier versions wrote have none: they are actions.
const (
	AuditAction AuditKind = "action" // a request that acts on the cluster, on commands or on tasks
	AuditLogin  AuditKind = "login"
	AuditLogout AuditKind = "logout"
	AuditToken  AuditKind = "token"  // an API token was made, changed or revoked
	AuditAccess AuditKind = "access" // a request that the user had no right to
	AuditExport AuditKind = "export" // tasks or audit records were exported
	AuditRule   AuditKind = "rule"   // a rule was changed: which arguments make two calls one, what is redacted
	AuditView   AuditKind = "view"   // a saved view was changed, or a group of failures resolved
)

// AuditKinds returns all kinds.
func AuditKinds() []AuditKind {
	return []AuditKind{AuditAction, AuditLogin, AuditLogout, AuditToken, AuditAccess, AuditExport, AuditRule, AuditView}
}

// AuditOutcome is what became of what an audit record is about.
type AuditOutcome string

// Outcomes. Records that earlier versions wrote have none: they were accepted.
const (
	AuditAccepted AuditOutcome = "accepted" // it was done, or its commands were enqueued
	AuditRefused  AuditOutcome = "refused"  // the credentials were wrong, or the user had no right to it
	AuditFailed   AuditOutcome = "failed"   // it was allowed and could not be done, or not to its end
)

// AuditOutcomes returns all outcomes.
func AuditOutcomes() []AuditOutcome {
	return []AuditOutcome{AuditAccepted, AuditRefused, AuditFailed}
}

// AuditRecord records what a user did or tried. Records are never changed or removed; each holds a hash over itself and the
// one before. No field may hold a secret.
type AuditRecord struct {
	ID           int64 // set by the store
	At           time.Time
	Kind         AuditKind
	Outcome      AuditOutcome
	Actor        string // who: name of the user, empty if unknown; what was typed, if it was refused
	Method       string // how the user was identified: basic, oidc, token, …
	Role         string // of the user
	RemoteAddr   string // IP address of the request
	Endpoint     string // page or resource of the request: /act/purge, API POST /api/v1/tasks
	Action       string // revoke, publish, login, export tasks, …
	Target       string // recipient or object: celery@w1, task 3f2a, token ci
	Detail       string // JSON: parameters, query, numbers
	Commands     int    // number of commands
	FirstCommand int64  // ID of the first, 0 if none
	Hash         string // hex of SHA-256, set by the store
}

// AuditFilter selects audit records for a list, newest first. Empty fields select all.
type AuditFilter struct {
	Kind     AuditKind
	Outcome  AuditOutcome
	Actor    string
	Action   string
	From, To time.Time // From is included, To is not
	Before   int64     // ID, 0 is from the newest
	Limit    int       // 1 to 500
}

// AuditLog takes audit records. It is safe for concurrent use.
type AuditLog interface {
	// Append writes a record. An empty time is now, an empty kind AuditAction, an empty outcome AuditAccepted. Whoever appends
	// the record of something before it is done does not do it if the error is not nil.
	Append(ctx context.Context, r AuditRecord) error
}
