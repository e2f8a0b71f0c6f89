package templates

import (
	"strconv"

	"github.com/a-h/templ"
)

// Audit is the content of the page of the audit log.
type Audit struct {
	Records       []AuditRecord
	Verified      bool  // all hashes are as they should be
	Tampered      int64 // the first record of which that is not so, 0 if none or not known
	Newest, Older string
}

// AuditRecord is something that somebody has done.
type AuditRecord struct {
	ID             int64
	At             int64
	Actor, Remote  string
	Action, Target string
	Detail         string // JSON
	Commands       int
	Request        int64 // 0 if there is none
	Hash           string
}

// Page draws the whole page.
func (v Audit) Page(l Layout) templ.Component { return auditPage(l, v) }

func (r AuditRecord) rowID() string { return "a-" + strconv.FormatInt(r.ID, 10) }
