package auth

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Bounds of passwords.
const (
	maxPassword  = 1024    // bytes
	maxHtpasswd  = 4 << 20 // bytes of the file
	maxCost      = 16      // of bcrypt: each step doubles its time
	maxVerified  = 1_000   // passwords remembered as right
	verifiedFor  = 5 * time.Minute
	reloadEvery  = time.Second
	passwordWait = 5 * time.Second // for others whose passwords are checked
)

// passwords knows users by their passwords: those of a file, and a list.
type passwords struct {
	path string
	log  *slog.Logger
	tell func() // that passwords have ended
	list map[string]credential
	busy chan struct{} // bounds how many are checked at once: each takes a processor for some time
	salt []byte

	mu       sync.Mutex
	file     map[string]credential
	modified time.Time
	size     int64
	looked   time.Time
	cost     int // of bcrypt, the highest of all users
	// verified holds hashes of addresses and users with passwords that were right, so that not each request of a script pays for bcrypt.
	verified map[[32]byte]verified
}

// credential is the password of a user.
type credential struct {
	hash   []byte // of bcrypt
	digest bool   // it is that of the SHA-256 of the password, since bcrypt reads 72 bytes only
}

type verified struct {
	proof string
	until time.Time
}

// proof names a password without telling it.
func (c credential) proof() string {
	sum := sha256.Sum256(c.hash)
	return hex.EncodeToString(sum[:8])
}

func (c credential) matches(password string) bool {
	return bcrypt.CompareHashAndPassword(c.hash, prepared(password, c.digest)) == nil
}

func prepared(password string, digest bool) []byte {
	if !digest {
		return []byte(password)
	}
	sum := sha256.Sum256([]byte(password))
	return []byte(hex.EncodeToString(sum[:]))
}

func newPasswords(path string, users []string, tell func(), log *slog.Logger) (*passwords, error) {
	p := &passwords{
		path: path, tell: tell, log: log, list: make(map[string]credential), verified: make(map[[32]byte]verified), cost: bcrypt.DefaultCost,
		busy: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)), salt: make([]byte, 32),
	}
	_, _ = rand.Read(p.salt)
	if len(users) > 1000 {
		return nil, errors.New("there are more than 1,000 users with passwords: write them to an htpasswd file")
	}
	for n, entry := range users {
		user, password, ok := strings.Cut(entry, ":")
		if !ok || user == "" || password == "" {
			return nil, fmt.Errorf("user %d of the list with passwords is not of the form user:password", n+1)
		}
		if len(password) > maxPassword {
			return nil, fmt.Errorf("the password of %s is longer than %d bytes", user, maxPassword)
		}
		if err := checkName(user); err != nil {
			return nil, err
		}
		if _, twice := p.list[user]; twice {
			return nil, fmt.Errorf("the user %s is listed twice", user)
		}
		hash, err := bcrypt.GenerateFromPassword(prepared(password, true), bcrypt.DefaultCost)
		if err != nil {
			return nil, err
		}
		p.list[user] = credential{hash, true}
	}
	if path == "" {
		return p, nil
	}
	return p, p.load()
}

// load reads the file.
func (p *passwords) load() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxHtpasswd+1))
	if err != nil {
		return err
	}
	if len(text) > maxHtpasswd {
		return fmt.Errorf("%s is larger than 4 MiB", p.path)
	}
	users, cost, err := parseHtpasswd(text)
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	if cost == 0 || len(p.list) > 0 {
		cost = max(cost, bcrypt.DefaultCost)
	}
	p.file, p.modified, p.size, p.cost = users, info.ModTime(), info.Size(), cost
	clear(p.verified)
	p.tell()
	return nil
}

func parseHtpasswd(text []byte) (map[string]credential, int, error) {
	users, most := make(map[string]credential), 0
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		user, hash, ok := strings.Cut(line, ":")
		if !ok || checkName(user) != nil {
			return nil, 0, fmt.Errorf("line %d is not of the form user:hash", n)
		}
		if rest, found := strings.CutPrefix(hash, "$2y$"); found { // as Apache calls it
			hash = "$2b$" + rest
		}
		cost, err := bcrypt.Cost([]byte(hash))
		if err != nil || len(hash) != 60 {
			return nil, 0, fmt.Errorf("line %d has no bcrypt hash: make it with htpasswd -B", n)
		}
		if cost > maxCost {
			return nil, 0, fmt.Errorf("line %d: the cost %d of its hash is more than %d", n, cost, maxCost)
		}
		if _, twice := users[user]; twice {
			return nil, 0, fmt.Errorf("line %d: the user %s is listed twice", n, user)
		}
		most = max(most, cost)
		users[user] = credential{hash: []byte(hash)}
	}
	return users, most, lines.Err()
}

// refresh reads the file again if it has changed. If that fails, the users before stay. p.mu is held.
func (p *passwords) refresh(now time.Time) {
	if p.path == "" || !p.looked.IsZero() && now.Sub(p.looked) < reloadEvery && !now.Before(p.looked) {
		return
	}
	p.looked = now
	info, err := os.Stat(p.path)
	if err == nil && info.ModTime().Equal(p.modified) && info.Size() == p.size {
		return
	}
	if err == nil {
		err = p.load()
	}
	if err != nil {
		p.log.Warn("the file of passwords cannot be read; the users before stay", "error", err)
		return
	}
	p.log.Info("read passwords again", "users", len(p.file))
}

// find returns the password of a user, false if there is none.
func (p *passwords) find(user string) (credential, bool) {
	c, ok := p.file[user]
	if !ok {
		c, ok = p.list[user]
	}
	return c, ok
}

// current reports whether a user still has the password of a proof.
func (p *passwords) current(user, proof string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh(now)
	c, ok := p.find(user)
	return ok && subtle.ConstantTimeCompare([]byte(c.proof()), []byte(proof)) == 1
}

// remembered returns the proof of a password that was right a short time ago from the same address.
func (p *passwords) remembered(address, user, password string, now time.Time) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh(now)
	v, ok := p.verified[p.key(address, user, password)]
	return v.proof, ok && now.Before(v.until)
}

func (p *passwords) key(address, user, password string) [32]byte {
	h := sha256.New()
	h.Write(p.salt)
	h.Write([]byte(address))
	h.Write([]byte{0})
	h.Write([]byte(user))
	h.Write([]byte{0})
	h.Write([]byte(password))
	return [32]byte(h.Sum(nil))
}

// verify checks a password and returns its proof. It takes as long for users who do not exist.
func (p *passwords) verify(ctx context.Context, address, user, password string, now time.Time) (proof string, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, passwordWait)
	defer cancel()
	select {
	case p.busy <- struct{}{}:
		defer func() { <-p.busy }()
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	p.mu.Lock()
	p.refresh(now)
	c, exists := p.find(user)
	cost := p.cost
	p.mu.Unlock()
	if !exists {
		c = nobody(cost)
	}
	if !c.matches(password) || !exists {
		return "", false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.verified) >= maxVerified {
		clear(p.verified)
	}
	p.verified[p.key(address, user, password)] = verified{c.proof(), now.Add(verifiedFor)}
	return c.proof(), true, nil
}

// nobody returns a credential that no password matches, of a cost.
func nobody(cost int) credential {
	return credential{hash: fmt.Appendf(nil, "$2a$%02d$%s", cost, strings.Repeat(".", 53))}
}

// checkPassword returns who has signed in with a password, within the limits of attempts.
func (s *Service) checkPassword(r *http.Request, user, password string) (identity, error) {
	wrong := &Error{Status: http.StatusUnauthorized, Message: "The user name or the password is wrong."}
	i := identity{Method: methodBasic, User: user}
	if checkName(user) != nil || password == "" || len(password) > maxPassword {
		if wait := s.addresses.take(limitedBy(s.address(r)), s.now()); wait > 0 {
			return i, tooMany(wait)
		}
		return i, wrong
	}
	now := s.now()
	address := limitedBy(s.address(r))
	// What is remembered must not tell a guess that has to wait that it is right.
	if wait := s.addresses.wait(address, now); wait > 0 {
		return i, tooMany(wait)
	}
	var known bool
	if i.Proof, known = s.passwords.remembered(address, user, password, now); known {
		return i, nil
	}
	// Strangers must not lock a user out: where a user has signed in before, only the attempts from there count.
	pair := address + "\x00" + user
	familiar := s.known.has(pair, now)
	if wait := s.addresses.take(address, now); wait > 0 {
		return i, tooMany(wait)
	}
	if !familiar {
		if wait := s.users.take(user, now); wait > 0 {
			return i, tooMany(wait)
		}
	}
	proof, ok, err := s.passwords.verify(r.Context(), address, user, password, now)
	if err != nil {
		return i, &Error{Status: http.StatusServiceUnavailable, Message: "Too many users sign in right now. Try again.", RetryAfter: 5 * time.Second}
	}
	if !ok {
		s.refused(r, user, methodBasic, "wrong user name or password")
		return i, wrong
	}
	s.addresses.back(address, now)
	if !familiar {
		s.users.back(user, now)
		s.known.take(pair, now)
	}
	i.Proof = proof
	return i, nil
}

func tooMany(wait time.Duration) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, RetryAfter: wait.Truncate(time.Second) + time.Second,
		Message: fmt.Sprintf("Too many attempts to sign in have failed. Try again in %v.", wait.Truncate(time.Second)+time.Second),
	}
}
