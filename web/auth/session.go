package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Bounds of sessions. Beyond them the one that was used longest ago ends.
const (
	maxSessions     = 10_000
	maxUserSessions = 100
)

// sessionCookie names a session. Only its hash is kept.
const sessionCookie = "umbel_session"

// sessions are the users who are signed in with browsers. They are in memory, and in the store so that they outlive the process.
type sessions struct {
	store     history.Credentials
	idle, max time.Duration
	tell      func() // that sessions have ended

	storing sync.Mutex // held while the store is read or written
	mu      sync.Mutex
	all     map[[32]byte]*session
	ended   [][32]byte // still to be removed from the store
}

type session struct {
	identity
	created, seen time.Time
	unsaved       bool
	stored        bool // the store has it, or had: then another process has ended it
}

func newSessions(ctx context.Context, store history.Credentials, idle, most time.Duration, tell func(), now time.Time) (*sessions, error) {
	t := &sessions{store: store, idle: idle, max: most, tell: tell, all: make(map[[32]byte]*session)}
	return t, t.read(ctx, now)
}

// read takes over which sessions the store has, as another process may have left them.
func (t *sessions) read(ctx context.Context, now time.Time) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	kept, err := t.store.Sessions(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := make(map[[32]byte]bool, len(kept))
	for _, k := range kept {
		known[k.Hash] = true
		if s := t.all[k.Hash]; s != nil {
			if s.seen.Before(k.SeenAt) {
				s.seen = k.SeenAt
			}
			continue
		}
		if slices.Contains(t.ended, k.Hash) {
			continue
		}
		i, err := decodeIdentity(k.Identity)
		s := &session{identity: i, created: k.CreatedAt, seen: k.SeenAt, stored: true}
		if err != nil || t.over(s, now) || len(t.all) >= maxSessions {
			t.ended = append(t.ended, k.Hash)
			continue
		}
		t.all[k.Hash] = s
	}
	for hash, s := range t.all {
		if s.stored && !known[hash] {
			delete(t.all, hash)
			t.tell()
		}
	}
	return nil
}

// over reports whether a session has ended by itself.
func (t *sessions) over(s *session, now time.Time) bool {
	return now.Sub(s.seen) >= t.idle || now.Sub(s.created) >= t.max
}

// find returns who is signed in with a cookie, nil if nobody is, and until when at most.
func (t *sessions) find(hash [32]byte, now time.Time) (*identity, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.all[hash]
	if s == nil {
		return nil, time.Time{}
	}
	if t.over(s, now) {
		t.remove(hash)
		return nil, time.Time{}
	}
	s.seen, s.unsaved = now, true
	i := s.identity
	return &i, s.created.Add(t.max)
}

// remove ends a session. t.mu is held.
func (t *sessions) remove(hash [32]byte) {
	if _, ok := t.all[hash]; ok {
		delete(t.all, hash)
		t.ended = append(t.ended, hash)
		t.tell()
	}
}

// start begins a session, in place of the one before of this browser.
func (t *sessions) start(ctx context.Context, i identity, before, hash [32]byte, now time.Time) error {
	t.mu.Lock()
	t.remove(before)
	t.trim(func(s *session) bool { return s.Method == i.Method && s.User == i.User }, maxUserSessions)
	t.trim(func(*session) bool { return true }, maxSessions)
	t.all[hash] = &session{identity: i, created: now, seen: now, unsaved: true}
	t.mu.Unlock()
	return t.save(ctx, now)
}

// trim ends the session used longest ago among those that match, if there are most of them.
func (t *sessions) trim(match func(*session) bool, most int) {
	var oldest [32]byte
	var seen time.Time
	n := 0
	for hash, s := range t.all {
		if match(s) {
			n++
			if seen.IsZero() || s.seen.Before(seen) {
				oldest, seen = hash, s.seen
			}
		}
	}
	if n >= most {
		t.remove(oldest)
	}
}

// end ends a session.
func (t *sessions) end(ctx context.Context, hash [32]byte, now time.Time) error {
	t.mu.Lock()
	t.remove(hash)
	t.mu.Unlock()
	return t.save(ctx, now)
}

// endAll ends all sessions of a user and returns how many.
func (t *sessions) endAll(ctx context.Context, method, user string, now time.Time) (int, error) {
	t.mu.Lock()
	n := 0
	for hash, s := range t.all {
		if s.Method == method && s.User == user {
			t.remove(hash)
			n++
		}
	}
	t.mu.Unlock()
	return n, t.save(ctx, now)
}

// save writes what has changed to the store, and forgets sessions that are over.
func (t *sessions) save(ctx context.Context, now time.Time) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	var begun, seen []history.Session
	for hash, s := range t.all {
		if t.over(s, now) {
			t.remove(hash)
			continue
		}
		if s.unsaved {
			list := &begun
			if s.stored {
				list = &seen
			}
			s.unsaved, s.stored = false, true
			*list = append(*list, history.Session{Hash: hash, Identity: s.encode(), CreatedAt: s.created, SeenAt: s.seen})
		}
	}
	ended := t.ended
	t.ended = nil
	t.mu.Unlock()
	if len(begun)+len(seen)+len(ended) == 0 {
		return nil
	}
	err := t.store.SaveSessions(ctx, begun, seen, ended)
	if err == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, ended...)
	for i, c := range slices.Concat(begun, seen) {
		if s := t.all[c.Hash]; s != nil {
			s.unsaved, s.stored = true, i >= len(begun)
		}
	}
	return err
}

// cookieHash returns the hash of the session that a request names.
func (s *Service) cookieHash(r *http.Request) (hash [32]byte, ok bool) {
	value := s.cookie(r, sessionCookie)
	if len(value) != base64.RawURLEncoding.EncodedLen(32) {
		return hash, false
	}
	return sha256.Sum256([]byte(value)), true
}

// bySession returns the grant of the session that a request names, one without a role if there is none.
func (s *Service) bySession(r *http.Request) (Grant, error) {
	hash, ok := s.cookieHash(r)
	if !ok {
		return Grant{}, nil
	}
	i, until := s.sessions.find(hash, s.now())
	if i == nil && s.refresh(r.Context()) {
		i, until = s.sessions.find(hash, s.now())
	}
	if i == nil {
		return Grant{}, nil
	}
	g := s.grant(i)
	g.Until = until
	return g, nil
}

// signIn begins a session with a new cookie, so that one that somebody else knows is of no use.
func (s *Service) signIn(w http.ResponseWriter, r *http.Request, i identity) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	value := base64.RawURLEncoding.EncodeToString(secret)
	before, _ := s.cookieHash(r)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second) // though the browser may be gone
	defer cancel()
	if err := s.sessions.start(ctx, i, before, sha256.Sum256([]byte(value)), s.now()); err != nil {
		return err
	}
	s.setCookie(w, r, sessionCookie, value, s.o.SessionMax)
	s.record(r, history.AuditRecord{
		Kind: history.AuditLogin, Action: "login", Target: i.Provider, Actor: i.User, Method: i.Method, Role: string(s.grant(&i).Role),
	}, nil)
	return nil
}

// HasSession reports whether the grant of a request is that of a session, which can be ended.
func (s *Service) HasSession(r *http.Request) bool {
	hash, ok := s.cookieHash(r)
	if !ok || r.Header.Get("Authorization") != "" {
		return false
	}
	i, _ := s.sessions.find(hash, s.now())
	return i != nil
}
