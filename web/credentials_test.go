package web_test

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
)

// noCredentials keeps no sessions and no tokens.
type noCredentials struct{}

func (noCredentials) Sessions(context.Context) ([]history.Session, error) { return nil, nil }

func (noCredentials) SaveSessions(context.Context, []history.Session, []history.Session, [][32]byte) error {
	return nil
}

func (noCredentials) Tokens(context.Context) ([]history.Token, error) { return nil, nil }

func (noCredentials) CreateToken(_ context.Context, t history.Token) (history.Token, error) {
	return t, nil
}

func (noCredentials) SaveTokens(context.Context, []history.Token) error { return nil }

func (noCredentials) DeleteToken(context.Context, int64) error { return nil }
