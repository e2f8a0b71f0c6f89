package auth

import (
	"net"
	"net/http"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/history"
)

// maxEndpoint bounds the path of an audit record, in bytes.
const maxEndpoint = 256

// AuditRecord returns an audit record with who makes a request, by the grant of its context, from where, and to which
// endpoint. The caller adds what it is about.
func AuditRecord(r *http.Request) history.AuditRecord {
	g := FromContext(r.Context())
	a := history.AuditRecord{
		Actor: g.User, Method: g.Method, Role: string(g.Role), RemoteAddr: r.RemoteAddr,
		Endpoint: r.Method + " " + truncate.Text(r.URL.Path, maxEndpoint),
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		a.RemoteAddr = host
	}
	return a
}
