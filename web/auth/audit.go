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
		Actor: g.User, Method: g.Method, Role: string(g.Role), RemoteAddr: RemoteAddr(r),
		Endpoint: r.Method + " " + truncate.Text(r.URL.Path, maxEndpoint),
	}
	return a
}

// RemoteAddr returns the address from which a request was made, by the grant of its context or else by its connection.
func RemoteAddr(r *http.Request) string {
	if g := FromContext(r.Context()); g.Address != "" {
		return g.Address
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}
