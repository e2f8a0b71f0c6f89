package historytest

import (
	"crypto/sha256"
	"errors"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func credentials() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Sessions are kept":                storeTest.sessionsKept,
		"Tokens are kept":                  storeTest.tokensKept,
		"Tokens are bounded":               storeTest.tokensBounded,
		"Tokens of hostile names are kept": storeTest.tokensHostile,
	}
}

func (c storeTest) sessionsKept() {
	at := time.UnixMicro(1_700_000_000_000_000)
	session := func(name string) history.Session {
		return history.Session{Hash: sha256.Sum256([]byte(name)), Identity: `{"user":"` + name + `"}`, CreatedAt: at, SeenAt: at.Add(time.Minute)}
	}
	check := func(want ...history.Session) {
		c.Helper()
		c.reopen()
		list, err := c.Sessions(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		got := make(map[[32]byte]history.Session)
		for _, s := range list {
			got[s.Hash] = s
		}
		kept := make(map[[32]byte]history.Session)
		for _, s := range want {
			kept[s.Hash] = s
		}
		if diff := cmp.Diff(kept, got); diff != "" {
			c.Errorf("sessions (-want +got):\n%s", diff)
		}
	}
	save := func(begun, seen []history.Session, ended ...[32]byte) {
		c.Helper()
		if err := c.SaveSessions(c.Context(), begun, seen, ended); err != nil {
			c.Fatal(err)
		}
	}
	check()
	ann, bob := session("ann"), session("bob")
	save([]history.Session{ann, bob}, nil)
	check(ann, bob)
	before := ann
	ann.SeenAt = at.Add(time.Hour)
	save(nil, []history.Session{ann}, bob.Hash, sha256.Sum256(nil))
	check(ann)
	save(nil, []history.Session{before, bob}) // as another process has seen them
	check(ann)
}

func (c storeTest) tokens() []history.Token {
	c.Helper()
	c.reopen()
	list, err := c.Tokens(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return list
}

func (c storeTest) create(t history.Token) history.Token {
	c.Helper()
	created, err := c.CreateToken(c.Context(), t)
	if err != nil {
		c.Fatal(err)
	}
	return created
}

func newToken(name string) history.Token {
	at := time.UnixMicro(1_700_000_000_000_000)
	return history.Token{Hash: sha256.Sum256([]byte(name)), Name: name, Role: "viewer", CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
}

func (c storeTest) tokensKept() {
	first := newToken("ci")
	first.Payload, first.Identity = true, `{"user":"ann"}`
	first, second := c.create(first), c.create(newToken("grafana"))
	if diff := cmp.Diff([]history.Token{first, second}, c.tokens()); diff != "" {
		c.Errorf("tokens (-want +got):\n%s", diff)
	}
	first.UsedAt, first.Identity = first.CreatedAt.Add(time.Minute), `{"user":"ann","groups":["ops"]}`
	if err := c.SaveTokens(c.Context(), []history.Token{first, {ID: 99}}); err != nil {
		c.Fatal(err)
	}
	if err := c.DeleteToken(c.Context(), second.ID); err != nil {
		c.Fatal(err)
	}
	if err := c.DeleteToken(c.Context(), second.ID); !errors.Is(err, history.ErrNotFound) {
		c.Errorf("delete token twice: error %v, want %v", err, history.ErrNotFound)
	}
	if diff := cmp.Diff([]history.Token{first}, c.tokens()); diff != "" {
		c.Errorf("tokens (-want +got):\n%s", diff)
	}
	if third := c.create(newToken("again")); third.ID == second.ID {
		c.Errorf("a new token has the ID %d of one that is gone", third.ID)
	}
}

func (c storeTest) tokensBounded() {
	for i := range history.MaxTokens {
		c.create(newToken(strconv.Itoa(i)))
	}
	if _, err := c.CreateToken(c.Context(), newToken("more")); !errors.Is(err, history.ErrTooManyTokens) {
		c.Errorf("create one token too many: error %v, want %v", err, history.ErrTooManyTokens)
	}
}

func (c storeTest) tokensHostile() {
	var want []history.Token
	for _, text := range hostile() {
		t := newToken(text)
		t.Identity = text
		want = append(want, c.create(t))
	}
	if diff := cmp.Diff(want, c.tokens()); diff != "" {
		c.Errorf("tokens (-want +got):\n%s", diff)
	}
}
