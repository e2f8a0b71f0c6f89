package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// tokenPrefix begins every API token, so that people and scanners of secrets see what it is.
const tokenPrefix = "umbel_"

// Bounds of API tokens, beside history.MaxTokens.
const (
	maxUserTokens = 50
	maxTokenName  = 100 // bytes
	// MaxTokenAge is how long a token is valid at most.
	MaxTokenAge = 10 * 366 * 24 * time.Hour
	// maxProvidedAge is the same for those whom a provider or proxy identifies, and does not tell when they leave.
	maxProvidedAge = 90 * 24 * time.Hour
)

// NewToken returns a token to be stored and the secret that is shown once: 256 random bits. It is for the clusters of a alone if that
// names some. The error says in one sentence what is wrong with the name or the age.
func NewToken(name string, a Audience, age time.Duration, now time.Time) (t history.Token, secret string, err error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return t, "", errors.New("a token needs a name that says what it is for")
	case len(name) > maxTokenName || checkName(name) != nil:
		return t, "", fmt.Errorf("the name of a token has at most %d bytes and no control characters", maxTokenName)
	case !a.Role.valid():
		return t, "", errors.New("the role of a token is viewer, operator or admin")
	case age <= 0 || age > MaxTokenAge:
		return t, "", errors.New("a token is valid for 1 to 3,660 days")
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random)
	secret = tokenPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
	return history.Token{
		Hash: sha256.Sum256([]byte(secret)), Name: name, Role: tokenRole(a), Payload: a.Payload,
		CreatedAt: now.Truncate(time.Microsecond), ExpiresAt: now.Add(age).Truncate(time.Microsecond),
	}, secret, nil
}

// tokenRole writes the role of a token. An Umbel that knows no clusters takes one with clusters for no role at all.
func tokenRole(a Audience) string {
	if a.Clusters == "" {
		return string(a.Role)
	}
	return a.Clusters + ":" + string(a.Role)
}

// TokenClusters returns the names of the clusters that a token is for, none if it is for all.
func TokenClusters(t history.Token) []string {
	if clusters, _, ok := strings.Cut(t.Role, ":"); ok {
		return strings.Split(clusters, ",")
	}
	return nil
}

// TokenOwner returns the name of the user who has made a token, empty if it was made on the command line.
func TokenOwner(t history.Token) string {
	i, _ := decodeIdentity(t.Identity)
	return i.User
}

// tokens are the API tokens of the store, in memory.
type tokens struct {
	store history.Credentials
	tell  func() // that tokens have ended

	storing sync.Mutex // held while the store is read or written
	mu      sync.Mutex
	all     map[[32]byte]*history.Token
	unsaved map[[32]byte]bool
}

func newTokens(ctx context.Context, store history.Credentials, tell func()) (*tokens, error) {
	t := &tokens{store: store, tell: tell, all: make(map[[32]byte]*history.Token), unsaved: make(map[[32]byte]bool)}
	return t, t.read(ctx)
}

// read takes over which tokens the store has, as another process may have left them.
func (t *tokens) read(ctx context.Context) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	kept, err := t.store.Tokens(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.all
	t.all = make(map[[32]byte]*history.Token, len(kept))
	for _, k := range kept {
		if old := before[k.Hash]; old != nil && t.unsaved[k.Hash] {
			k = *old
		}
		t.all[k.Hash] = &k
		delete(before, k.Hash)
	}
	if len(before) > 0 {
		t.tell()
	}
	return nil
}

// use returns a token that is valid.
func (t *tokens) use(secret string, now time.Time) (history.Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.all[sha256.Sum256([]byte(secret))]
	if found == nil || !now.Before(found.ExpiresAt) {
		return history.Token{}, false
	}
	found.UsedAt, t.unsaved[found.Hash] = now, true
	return *found, true
}

func (t *tokens) save(ctx context.Context) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	var changed []history.Token
	for hash := range t.unsaved {
		if token := t.all[hash]; token != nil {
			changed = append(changed, *token)
		}
	}
	clear(t.unsaved)
	t.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	return t.store.SaveTokens(ctx, changed)
}

// own gives the tokens of a user who signs in the groups and addresses that the provider tells now: what the owner may not do any
// more, they may not either.
func (t *tokens) own(ctx context.Context, i identity) error {
	now, changed := i.encode(), false
	t.mu.Lock()
	for hash, token := range t.all {
		if owns(&i, token) && token.Identity != now {
			token.Identity, t.unsaved[hash], changed = now, true, true
		}
	}
	t.mu.Unlock()
	if !changed {
		return nil
	}
	t.tell()
	return t.save(ctx)
}

// list returns the tokens of an owner, or all.
func (t *tokens) list(owner *identity) (list []history.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range t.all {
		if owner == nil || owns(owner, token) {
			list = append(list, *token)
		}
	}
	return list
}

func owns(owner *identity, t *history.Token) bool {
	i, err := decodeIdentity(t.Identity)
	return err == nil && i.Method == owner.Method && i.User == owner.User
}

func (t *tokens) create(ctx context.Context, token history.Token) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	created, err := t.store.CreateToken(ctx, token)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[created.Hash] = &created
	return nil
}

// revoke removes a token at once, and then from the store.
func (t *tokens) revoke(ctx context.Context, token history.Token) error {
	t.storing.Lock()
	defer t.storing.Unlock()
	t.mu.Lock()
	delete(t.all, token.Hash)
	t.mu.Unlock()
	t.tell()
	err := t.store.DeleteToken(ctx, token.ID)
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		t.mu.Lock()
		t.all[token.Hash] = &token // it would be back after a restart, so it is shown until it is gone
		t.mu.Unlock()
		return err
	}
	return nil
}

// byToken returns the grant of an API token: what it was made for, within what its owner may still do.
func (s *Service) byToken(r *http.Request, secret string) (Grant, error) {
	token, ok := s.tokens.use(secret, s.now())
	if !ok && s.refresh(r.Context()) {
		token, ok = s.tokens.use(secret, s.now())
	}
	if !ok {
		if wait := s.addresses.take(limitedBy(s.address(r)), s.now()); wait > 0 {
			return Grant{}, tooMany(wait)
		}
		s.refused(r, "", methodToken, "API token unknown, expired or revoked")
		return Grant{}, &Error{Status: http.StatusUnauthorized, Message: "The API token is unknown, expired or revoked."}
	}
	g := Grant{User: "token " + token.Name, Method: methodToken, Until: token.ExpiresAt}
	if token.Identity == "" {
		if err := s.entitleToken(&g, token); err != nil {
			return Grant{}, err
		}
		return g, nil
	}
	s.entitleAll(&g, Audience{Role: Role(token.Role), Payload: token.Payload})
	owner, err := decodeIdentity(token.Identity)
	if err != nil {
		return Grant{}, &Error{Status: http.StatusUnauthorized, Message: "The owner of the API token cannot be decoded: make a new one."}
	}
	most := s.ownerGrant(&owner)
	switch {
	case most.Role == "" && len(most.Clusters) > 0:
		return Grant{}, NoCluster(s.cluster)
	case most.Role == "":
		return Grant{}, &Error{Status: http.StatusForbidden, Message: "The owner of the API token may not use this dashboard any more."}
	}
	g.User = cut(owner.User+" (token "+token.Name+")", maxName)
	g.Audience, g.Clusters = g.lower(most.Audience), most.Clusters
	if g.everywhere.Covers(most.everywhere) {
		g.everywhere = most.everywhere
	}
	return g, nil
}

// ownerGrant returns what the owner of a token may still do. A new password takes nothing away, a user who is gone all.
func (s *Service) ownerGrant(i *identity) (g Grant) {
	if i.Method == methodNone && !s.Configured() {
		s.entitleAll(&g, Everything)
		return g
	}
	if i.Method == methodBasic && s.passwords != nil {
		i.Proof = s.passwords.proofOf(i.User, s.now())
	}
	return s.grant(i)
}

// proofOf returns the proof of a user, empty if there is none.
func (p *passwords) proofOf(user string, now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh(now)
	if c, ok := p.find(user); ok {
		return c.proof()
	}
	return ""
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
