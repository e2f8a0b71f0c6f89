package templates

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
)

// Audit is the content of the page of the audit log.
type Audit struct {
	Records       []history.AuditRecord
	Verified      bool  // all hashes are right
	Tampered      int64 // the first record with a wrong hash, 0 if there is none or it is not known
	Filter        AuditFilter
	Export        string // address of all that the filter selects as CSV
	Newest, Older string
}

// AuditFilter is what the form of the page says.
type AuditFilter struct {
	Kind                history.AuditKind
	Outcome             history.AuditOutcome
	Actor, Since, Until string
}

// jsonl returns the address of an export as JSON lines.
func (v Audit) jsonl() string {
	if strings.Contains(v.Export, "?") {
		return v.Export + "&format=jsonl"
	}
	return v.Export + "?format=jsonl"
}

// auditKindWord names a kind for people.
func auditKindWord(k history.AuditKind) string {
	switch k {
	case history.AuditLogin:
		return "Logins"
	case history.AuditLogout:
		return "Logouts"
	case history.AuditToken:
		return "Tokens"
	case history.AuditAccess:
		return "Refused access"
	case history.AuditExport:
		return "Exports"
	case history.AuditRule:
		return "Rules"
	case history.AuditView:
		return "Views"
	case history.AuditAction:
	}
	return "Actions"
}

// auditOutcomeWord names an outcome for people.
func auditOutcomeWord(o history.AuditOutcome) string {
	switch o {
	case history.AuditRefused:
		return "Refused"
	case history.AuditFailed:
		return "Failed"
	case history.AuditAccepted:
	}
	return "Accepted"
}

// Page draws the whole page.
func (v Audit) Page(l Layout) templ.Component { return auditPage(l, v) }

func auditRowID(r history.AuditRecord) string { return "a-" + strconv.FormatInt(r.ID, 10) }
