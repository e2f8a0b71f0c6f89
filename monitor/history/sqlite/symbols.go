package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// symbols is the table of symbols in memory. It is safe for concurrent use; transactions change it when they commit.
type symbols struct {
	mu     sync.RWMutex
	byText map[string]int64
	texts  map[int64]string
	used   map[int64]bool // by transactions since recordUse(true); nil if off
}

// loadSymbols reads the whole table.
func (d *DB) loadSymbols(ctx context.Context) error {
	found := make(map[string]int64)
	err := tables.EachRow(ctx, d.read, `SELECT symbol, text FROM symbols`, nil, func(rows *sql.Rows) error {
		var n int64
		var text string
		err := rows.Scan(&n, &text)
		found[text] = n
		return err
	})
	if err != nil {
		return err
	}
	d.symbols.change(found, nil)
	return nil
}

// symbol returns the symbol of a text, false if it has none.
func (s *symbols) symbol(text string) (int64, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.byText[text]
	return n, ok
}

// lookupForWrite is symbol for a text to be written.
func (s *symbols) lookupForWrite(text string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.byText[text]
	if ok && s.used != nil {
		s.used[n] = true
	}
	return n, ok
}

// recordUse turns recording of used and added symbols on or off.
func (s *symbols) recordUse(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = nil
	if on {
		s.used = make(map[int64]bool)
	}
}

// usedSince reports whether a symbol was used or added since recordUse(true).
func (s *symbols) usedSince(symbol int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.used[symbol]
}

// without returns all symbols except those in used.
func (s *symbols) without(used map[int64]bool) (rest []int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for n := range s.texts {
		if !used[n] {
			rest = append(rest, n)
		}
	}
	return rest
}

// text returns the text of a symbol, empty if it has none.
func (s *symbols) text(symbol int64) string {
	if symbol == 0 {
		return ""
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.texts[symbol]
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
		if s.used != nil {
			s.used[n] = true
		}
	}
}
