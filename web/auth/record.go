package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// record appends to the audit log what somebody has done. It cannot be undone if that fails, so that is logged. The user and the
// method of a are those of the request, unless it has its own.
func (s *Service) record(r *http.Request, a history.AuditRecord, detail map[string]any) {
	if s.o.Audit == nil {
		return
	}
	full := AuditRecord(r)
	full.Kind, full.Outcome, full.Action, full.Target = a.Kind, a.Outcome, a.Action, a.Target
	if a.Method != "" {
		full.Actor, full.Method, full.Role = a.Actor, a.Method, a.Role
	}
	full.At, full.RemoteAddr = s.now(), s.address(r).String()
	text := []byte("{}")
	if len(detail) > 0 {
		text, _ = json.Marshal(detail)
	}
	full.Detail = string(text)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := s.o.Audit.Append(ctx, full); err != nil {
		s.log.ErrorContext(ctx, "audit record cannot be written", "action", a.Action, "error", err)
	}
}

// refused records an attempt to sign in that was refused. Strangers decide how many there are; the audit log bounds them.
func (s *Service) refused(r *http.Request, user, method, why string) {
	user = cut(user, maxName)
	s.log.InfoContext(r.Context(), "sign-in refused", "user", user, "method", method, "address", s.address(r).String(), "reason", why)
	s.record(r, history.AuditRecord{
		Kind: history.AuditLogin, Outcome: history.AuditRefused, Action: "login", Actor: user, Method: method,
	}, map[string]any{"reason": why})
}
