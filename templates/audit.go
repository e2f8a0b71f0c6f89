package templates

import (
	"strconv"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
)

// Audit is the content of the page of the audit log.
type Audit struct {
	Records       []history.AuditRecord
	Verified      bool  // all hashes are right
	Tampered      int64 // the first record with a wrong hash, 0 if there is none or it is not known
	Newest, Older string
}

// Page draws the whole page.
func (v Audit) Page(l Layout) templ.Component { return auditPage(l, v) }

func auditRowID(r history.AuditRecord) string { return "a-" + strconv.FormatInt(r.ID, 10) }
