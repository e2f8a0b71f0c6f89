package history

import (
	"context"
	"errors"
	"time"
)

// MaxTokens is how many API tokens can be kept.
const MaxTokens = 1_000

// ErrTooManyTokens is returned when MaxTokens are kept already.
var ErrTooManyTokens = errors.New("too many API tokens")

// Credentials stores who is signed in, and API tokens. It holds no secret, only hashes of them.
type Credentials interface {
	// Sessions returns all sessions, in no order.
	Sessions(ctx context.Context) ([]Session, error)
	// SaveSessions creates those that have begun, saves when others were seen if that is newer, and removes those with the hashes
	// in ended. It ignores those seen that are gone.
	SaveSessions(ctx context.Context, begun, seen []Session, ended [][32]byte) error
	// Tokens returns all tokens by ID.
	Tokens(ctx context.Context) ([]Token, error)
	// CreateToken adds a token and returns it with its ID. The error is ErrTooManyTokens where MaxTokens are kept.
	CreateToken(ctx context.Context, t Token) (Token, error)
	// SaveTokens saves the owners of tokens and when they were last used. It ignores those that are gone.
	SaveTokens(ctx context.Context, changed []Token) error
	// DeleteToken removes a token, ErrNotFound if there is none.
	DeleteToken(ctx context.Context, id int64) error
}

// Session is a user who is signed in with one browser.
type Session struct {
	Hash      [32]byte // SHA-256 of what the cookie holds
	Identity  string   // JSON, written by package auth
	CreatedAt time.Time
	SeenAt    time.Time // of the last request, a minute late at most
}

// Token is an API token.
type Token struct {
	ID        int64
	Hash      [32]byte // SHA-256 of the token
	Name      string
	Identity  string // of its owner: JSON, written by package auth; empty if it was made on the command line
	Role      string // of several clusters in some alone, with their names before it: billing,shop:viewer
	Payload   bool   // arguments and results may be seen with it
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // a minute late at most; zero if never
}
