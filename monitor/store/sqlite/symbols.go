package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// symbols holds the table of symbols in memory. It is safe for concurrent use; only the transaction that
// holds the gate changes it, when it commits.
type symbols struct {
	mu     sync.RWMutex
	byText map[string]int64
	texts  map[int64]string
}

// load reads the whole table.
func (s *symbols) load(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT symbol, text FROM symbols`)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := make(map[string]int64)
	for rows.Next() {
		var n int64
		var text string
		if err := rows.Scan(&n, &text); err != nil {
			return err
		}
		found[text] = n
	}
	s.change(found, nil)
	return rows.Err()
}

// symbol returns the symbol of a text, false if it has none.
func (s *symbols) symbol(text string) (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.byText[text]
	return n, ok
}

// text returns the text of a symbol, empty if it has none.
func (s *symbols) text(symbol int64) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.texts[symbol]
}

// each calls f with every symbol, in no order. f must not block.
func (s *symbols) each(f func(symbol int64, text string)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for n, text := range s.texts {
		f(n, text)
	}
}

// change adds symbols and removes others.
func (s *symbols) change(added map[string]int64, removed []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts == nil {
		s.byText, s.texts = make(map[string]int64), make(map[int64]string)
	}
	for _, n := range removed {
		delete(s.byText, s.texts[n])
		delete(s.texts, n)
	}
	for text, n := range added {
		s.byText[text], s.texts[n] = n, text
	}
}
