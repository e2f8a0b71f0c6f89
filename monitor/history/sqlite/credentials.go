package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Sessions implements history.Credentials.
func (d *DB) Sessions(ctx context.Context) (sessions []history.Session, err error) {
	defer annotate(&err, "read sessions")
	err = eachRow(ctx, d.read, `SELECT hash, identity, created, seen FROM sessions`, nil, func(rows *sql.Rows) error {
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
func (d *DB) SaveSessions(ctx context.Context, save []history.Session, ended [][32]byte) (err error) {
	defer annotate(&err, "save sessions")
	return d.update(ctx, func(t *tx) error {
		for _, hash := range ended {
			if err := t.exec(`DELETE FROM sessions WHERE hash = ?`, hash[:]); err != nil {
				return err
			}
		}
		for _, s := range save {
			err := t.exec(`INSERT OR REPLACE INTO sessions (hash, identity, created, seen) VALUES (?, ?, ?, ?)`,
				s.Hash[:], s.Identity, s.CreatedAt.UnixMicro(), s.SeenAt.UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Tokens implements history.Credentials.
func (d *DB) Tokens(ctx context.Context) (tokens []history.Token, err error) {
	defer annotate(&err, "read tokens")
	const all = `SELECT token, hash, name, identity, role, payload, created, expires, used FROM tokens ORDER BY token`
	err = eachRow(ctx, d.read, all, nil, func(rows *sql.Rows) error {
		var t history.Token
		var hash []byte
		var created, expires int64
		var used sql.NullInt64
		err := rows.Scan(&t.ID, &hash, &t.Name, &t.Identity, &t.Role, &t.Payload, &created, &expires, &used)
		copy(t.Hash[:], hash)
		t.CreatedAt, t.ExpiresAt, t.UsedAt = time.UnixMicro(created), time.UnixMicro(expires), moment(used)
		tokens = append(tokens, t)
		return err
	})
	return tokens, err
}

// CreateToken implements history.Credentials.
func (d *DB) CreateToken(ctx context.Context, token history.Token) (_ history.Token, err error) {
	defer annotate(&err, "create token")
	err = d.update(ctx, func(t *tx) error {
		err := t.get(`INSERT INTO tokens (hash, name, identity, role, payload, created, expires)
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
func (d *DB) SaveTokens(ctx context.Context, changed []history.Token) (err error) {
	defer annotate(&err, "save tokens")
	return d.update(ctx, func(t *tx) error {
		for _, c := range changed {
			if err := t.exec(`UPDATE tokens SET used = ?, identity = ? WHERE token = ?`, micros(c.UsedAt), c.Identity, c.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteToken implements history.Credentials.
func (d *DB) DeleteToken(ctx context.Context, id int64) (err error) {
	defer annotate(&err, "delete token")
	return notFound(d.update(ctx, func(t *tx) error {
		var n int64
		return t.get(`DELETE FROM tokens WHERE token = ? RETURNING token`, []any{id}, &n)
	}))
}
