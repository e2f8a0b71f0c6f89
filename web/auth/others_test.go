package auth_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/web/auth"
)

// TestSeveralProcessesShareSessions signs in with one process and out with another.
func TestSeveralProcessesShareSessions(t *testing.T) {
	t.Parallel()
	o := auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret"), Shared: true}
	one := newSite(t, o)
	two := &site{T: t, store: one.store, clock: one.clock, log: one.log}
	two.start(o)
	c := browser(t)
	one.post(c, "/login", "user", "ann", "password", "s3cret")
	secret := sessionOf(one, c)
	two.shows(browser(t), "ann by basic as admin with payloads", "Cookie", two.cookie(secret))
	two.shows(browser(t), nobody, "Cookie", two.cookie(secret[1:]+"A"))

	ended := one.Ended()
	go func() { _ = one.Service.Run(t.Context()) }() // returns nil
	stranger := browser(t)
	two.post(stranger, "/login", "user", "ann", "password", "s3cret")
	two.post(stranger, "/logout/everywhere")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("a session does not end that another process has ended")
	}
	one.shows(browser(t), nobody, "Cookie", one.cookie(secret))
}
