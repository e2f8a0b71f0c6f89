package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/umbelhq/umbel/web/mcp"
)

// What a terminal understands.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	homeCursor  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// topCmd shows workers, queues and task types.
type topCmd struct {
	remoteFlags

	Every time.Duration `default:"2s" help:"Interval of reading."`
}

// Run draws until q is pressed or ctx ends, or prints once where the output is no terminal.
func (c *topCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	remote, err := c.remote()
	if err != nil {
		return err
	}
	if c.Every < 100*time.Millisecond {
		return usageError{fmt.Errorf("--every %s is less than 100ms", c.Every)}
	}
	out, ok := s.out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		t, err := readTop(ctx, remote)
		if err != nil {
			return err
		}
		_, err = s.out.Write(t.draw(0, 0))
		return err
	}
	if in, ok := s.in.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		old, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("read keys: %w", err)
		}
		defer term.Restore(int(in.Fd()), old) //nolint:errcheck // nothing is left to be done about it
		ctx = untilQuit(ctx, in)
	}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	defer io.WriteString(out, leaveScreen) //nolint:errcheck // likewise
	return c.show(ctx, remote, out)
}

// show draws again and again.
func (c *topCmd) show(ctx context.Context, remote mcp.Remote, out *os.File) error {
	var last top
	for {
		t, err := readTop(ctx, remote)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			last.problem = err.Error() + "; trying again"
		default:
			last = t
		}
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			width, height = 80, 24
		}
		frame := bytes.ReplaceAll(last.draw(width, height), []byte("\n"), []byte(clearLine+"\r\n"))
		if _, err := out.WriteString(homeCursor + string(frame) + clearLine + clearBelow); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
	}
}

// untilQuit returns a context that ends when q or Ctrl-C is pressed. Nothing can end a read of a terminal, so that the
// goroutine lasts as long as the process.
func untilQuit(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		key := make([]byte, 1)
		for {
			if _, err := in.Read(key); err != nil || strings.ContainsRune("qQ\x03\x04", rune(key[0])) {
				return
			}
		}
	}()
	return ctx
}

// top is what is shown.
type top struct {
	problem  string // why it is not as of now, empty if it is
	sentence string // whether work flows
	rates    string
	tables   []topTable
}

// topTable has rows of cells below their heads, those that matter first.
type topTable struct {
	head []string
	rows [][]string
	more int // rows that were not read
}

const (
	widestName = 30 // characters of a first cell where a terminal is narrow
	topLines   = 3  // beside the tables, which have topHeads each
	topHeads   = 2
)

// draw writes text of at most so many columns and lines; 0 means any number.
func (t *top) draw(width, height int) []byte {
	lines := []string{t.sentence, t.rates}
	rooms := t.rooms(height)
	for i := range t.tables {
		lines = append(lines, "")
		lines = append(lines, t.tables[i].lines(rooms[i], width)...)
	}
	if height > 0 {
		lines = append(lines[:min(len(lines), height-1)], cmp.Or(t.problem, "q: quit"))
	}
	var out bytes.Buffer
	for i, line := range lines {
		if width > 0 {
			line = cut(line, width)
		}
		out.WriteString(strings.TrimRight(line, " "))
		if height == 0 || i < len(lines)-1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// rooms returns how many rows each table may have: equal parts, and what some leave goes to the others.
func (t *top) rooms(height int) []int {
	rooms := make([]int, len(t.tables))
	left := max(0, height-topLines-topHeads*len(t.tables))
	if height == 0 {
		left = math.MaxInt
	}
	for given := true; given && left > 0; {
		given = false
		for i := range rooms {
			if want := len(t.tables[i].rows) + min(1, t.tables[i].more); rooms[i] < want && left > 0 {
				rooms[i]++
				left--
				given = true
			}
		}
	}
	return rooms
}

// lines aligns the cells of the head and of at most room rows, the last of which tells of those left out.
func (t *topTable) lines(room, width int) []string {
	rows, more := t.rows, t.more
	if len(rows)+min(1, more) > room {
		rows = rows[:max(0, room-1)]
		more += len(t.rows) - len(rows)
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{t.head}, rows) {
		row = slices.Clone(row)
		if width > 0 {
			row[0] = cut(row[0], max(widestName, width-50))
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // into memory
	}
	_ = w.Flush()
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if more > 0 && room > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return lines
}

// cut shortens text to so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:max(0, most-1)]) + "…"
	}
	return text
}
