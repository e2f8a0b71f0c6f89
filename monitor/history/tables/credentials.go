package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Sessions implements history.Credentials.
func (d Store) Sessions(ctx context.Context) (sessions []history.Session, err error) {
	defer d.engine.Annotate(&err, "read sessions")
	err = EachRow(ctx, d.engine.Reader(), `SELECT hash, identity, created, seen FROM sessions`, nil, func(rows *sql.Rows) error {
		var s history.Session
		var hash []byte
		var created, seen int64
		err := rows.Scan(&hash, &s.Identity, &created, &seen)
		copy(s.Hash[:], hash)
		s.CreatedAt, s.SeenAt = time.UnixMicro(created), time.UnixMicro(seen)
		sessions = append(sessions, s)
		return err
	})
	return sessions, err
}

// SaveSessions implements history.Credentials.
func (d Store) SaveSessions(ctx context.Context, begun, seen []history.Session, ended [][32]byte) (err error) {
	defer d.engine.Annotate(&err, "save sessions")
	return d.update(ctx, func(t tx) error {
		for _, hash := range ended {
			if err := t.Exec(`DELETE FROM sessions WHERE hash = ?`, hash[:]); err != nil {
				return err
			}
		}
		for _, s := range seen {
			if err := t.Exec(`UPDATE sessions SET seen = ? WHERE hash = ? AND seen < ?`, s.SeenAt.UnixMicro(), s.Hash[:], s.SeenAt.UnixMicro()); err != nil {
				return err
			}
		}
		for _, s := range begun {
			err := t.Exec(`INSERT INTO sessions (hash, identity, created, seen) VALUES (?, ?, ?, ?)
				ON CONFLICT (hash) DO UPDATE SET identity = excluded.identity, created = excluded.created, seen = excluded.seen`,
				s.Hash[:], s.Identity, s.CreatedAt.UnixMicro(), s.SeenAt.UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Tokens implements history.Credentials.
func (d Store) Tokens(ctx context.Context) (tokens []history.Token, err error) {
	defer d.engine.Annotate(&err, "read tokens")
	const all = `SELECT token, hash, name, identity, role, payload, created, expires, used FROM tokens ORDER BY token`
	err = EachRow(ctx, d.engine.Reader(), all, nil, func(rows *sql.Rows) error {
		var t history.Token
		var hash []byte
		var created, expires int64
		var used sql.NullInt64
		err := rows.Scan(&t.ID, &hash, &t.Name, &t.Identity, &t.Role, &t.Payload, &created, &expires, &used)
		copy(t.Hash[:], hash)
		t.CreatedAt, t.ExpiresAt, t.UsedAt = time.UnixMicro(created), time.UnixMicro(expires), Moment(used)
		tokens = append(tokens, t)
		return err
	})
	return tokens, err
}

// CreateToken implements history.Credentials.
func (d Store) CreateToken(ctx context.Context, token history.Token) (_ history.Token, err error) {
	defer d.engine.Annotate(&err, "create token")
	err = d.update(ctx, func(t tx) error {
		err := t.Get(`INSERT INTO tokens (hash, name, identity, role, payload, created, expires)
			SELECT ?, ?, ?, ?, ?, ?, ? WHERE (SELECT count(*) FROM tokens) < ? RETURNING token`,
			[]any{
				token.Hash[:], token.Name, token.Identity, token.Role, token.Payload, token.CreatedAt.UnixMicro(), token.ExpiresAt.UnixMicro(),
				history.MaxTokens,
			}, &token.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return history.ErrTooManyTokens
		}
		return err
	})
	return token, err
}

// SaveTokens implements history.Credentials.
func (d Store) SaveTokens(ctx context.Context, changed []history.Token) (err error) {
	defer d.engine.Annotate(&err, "save tokens")
	return d.update(ctx, func(t tx) error {
		for _, c := range changed {
			if err := t.Exec(`UPDATE tokens SET used = ?, identity = ? WHERE token = ?`, Micros(c.UsedAt), c.Identity, c.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteToken implements history.Credentials.
func (d Store) DeleteToken(ctx context.Context, id int64) (err error) {
	defer d.engine.Annotate(&err, "delete token")
	return NotFound(d.update(ctx, func(t tx) error {
		var n int64
		return t.Get(`DELETE FROM tokens WHERE token = ? RETURNING token`, []any{id}, &n)
	}))
}
