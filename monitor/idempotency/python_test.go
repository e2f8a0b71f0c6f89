package idempotency_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/idempotency"
)

// TestCanonicalFormAgreesWithPython feeds the same texts to Python's json. A fifth of them were damaged: both must read
// them as the same, or refuse them.
func TestCanonicalFormAgreesWithPython(t *testing.T) {
	t.Parallel()
	const payloads = 100_000
	c := exec.CommandContext(t.Context(), testenv.Python(t), "testdata/canonical.py")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		w := bufio.NewWriter(in)
		for g := newPayloads(); g.n < payloads; {
			decimals, text := g.next()
			_, _ = fmt.Fprintf(w, "%s %s\n", decimals, text)
		}
		_ = w.Flush() // Python's answers tell
		sent <- in.Close()
	}()
	answers := bufio.NewReaderSize(out, 1<<20)
	refused, wrong := 0, 0
	for g := newPayloads(); g.n < payloads; {
		decimals, text := g.next()
		want, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", g.n, err)
		}
		want = strings.TrimSuffix(want, "\n")
		if got := canonical(t, decimals, text); got != want {
			t.Errorf("%s %q\ngot  %s\nwant %s", decimals, text, got, want)
			if wrong++; wrong > 5 {
				t.FailNow()
			}
		}
		if want == "!" {
			refused++
		}
	}
	if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
		t.Errorf("Python answered more: %.100q, %v", rest, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if refused < payloads/20 || refused > payloads/5 {
		t.Errorf("%d of %d were refused: the texts are not what they should be", refused, payloads)
	}
}

// canonical is what the Go package makes of a line of the script.
func canonical(t *testing.T, decimals string, text []byte) string {
	t.Helper()
	v, err := idempotency.Parse(text)
	if err != nil {
		return "!"
	}
	if decimals == "-" {
		return v.String()
	}
	n, err := strconv.Atoi(decimals)
	if err != nil {
		t.Fatal(err)
	}
	f, err := idempotency.New(idempotency.Options{Precision: &n})
	if err != nil {
		t.Fatal(err)
	}
	kwargs, err := idempotency.ValueOf(map[string]any{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	if _, kwargs, err = f.Reduce(idempotency.Value{}, kwargs); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(kwargs.String(), `{"v":`), "}")
}

// payloads makes texts of JSON, the same ones each time.
type payloads struct {
	r *rand.Rand
	b bytes.Buffer
	n int
}

func newPayloads() *payloads { return &payloads{r: rand.New(rand.NewPCG(1, 2))} }

// next returns a number of decimals, or -, and a text without line feeds.
func (p *payloads) next() (string, []byte) {
	p.n++
	p.b.Reset()
	p.value(4)
	text := p.b.Bytes()
	if p.r.IntN(5) == 0 && len(text) > 0 {
		at := p.r.IntN(len(text))
		switch p.r.IntN(4) {
		case 0:
			text = text[:at]
		case 1:
			text[at] = `{}[]",:\ue+-.019aN `[p.r.IntN(19)]
		case 2:
			text[at] ^= 1 << p.r.IntN(8)
		default:
			text = append(text[:at], text[min(len(text), at+1+p.r.IntN(3)):]...)
		}
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r"))
	}
	if p.r.IntN(4) > 0 {
		return "-", text
	}
	return strconv.Itoa(p.r.IntN(16)), text
}

func (p *payloads) space() {
	if p.r.IntN(3) == 0 {
		p.b.WriteString([]string{" ", "\t", "\r", "  "}[p.r.IntN(4)])
	}
}

func (p *payloads) value(depth int) {
	p.space()
	defer p.space()
	kind := p.r.IntN(12)
	if depth == 0 {
		kind = p.r.IntN(8)
	}
	switch kind {
	case 0:
		p.b.WriteString([]string{"null", "true", "false", "NaN", "Infinity", "-Infinity"}[p.r.IntN(6)])
	case 1, 2:
		p.text()
	case 3:
		p.integer()
	case 4, 5, 6, 7:
		p.float()
	case 8:
		p.b.WriteByte('[')
		for i := range p.r.IntN(5) {
			if i > 0 {
				p.b.WriteByte(',')
			}
			p.value(depth - 1)
		}
		p.b.WriteByte(']')
	default:
		p.b.WriteByte('{')
		for i := range p.r.IntN(7) {
			if i > 0 {
				p.b.WriteByte(',')
			}
			p.space()
			p.text()
			p.space()
			p.b.WriteByte(':')
			p.value(depth - 1)
		}
		p.b.WriteByte('}')
	}
}

func (p *payloads) digits(most int) {
	for range 1 + p.r.IntN(most) {
		p.b.WriteByte(byte('0' + p.r.IntN(10)))
	}
}

func (p *payloads) integer() {
	p.b.WriteString([]string{"", "-"}[p.r.IntN(2)])
	if p.r.IntN(8) == 0 {
		p.b.WriteByte('0')
		return
	}
	p.b.WriteByte(byte('1' + p.r.IntN(9)))
	p.digits([]int{3, 25, 400}[p.r.IntN(3)])
	if p.r.IntN(1000) == 0 {
		p.digits(20_000)
	}
}

func (p *payloads) float() {
	switch p.r.IntN(6) {
	case 0: // any float, as Python writes it or with all digits
		f := math.Float64frombits(p.r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 1e16
		}
		format := []byte("gef")[p.r.IntN(3)]
		p.b.WriteString(strings.Replace(strconv.FormatFloat(f, format, []int{-1, 20}[p.r.IntN(2)], 64), ".e", "e", 1))
	case 1: // around the places where the form changes
		p.b.WriteString([]string{
			"1e16", "9999999999999998.0", "10000000000000000.0", "1e-4", "0.0001", "0.00009999", "1E+22", "1e23", "-0.0", "0e0",
			"1.7976931348623157e308", "1.7976931348623159e308", "5e-324", "2e-324", "2.2250738585072011e-308", "1e400", "-1e400", "1e-400",
			"9007199254740993.0", "9007199254740993e0", "0.5", "2.5", "0.125", "2.675", "1e99999999999999999999", "1e-99999999999999999999",
		}[p.r.IntN(26)])
	case 2: // half way between two floats, or next to that
		f := math.Float64frombits(p.r.Uint64()>>12 | uint64(1023+p.r.IntN(140)-70)<<52)
		text := strconv.FormatFloat(f, 'f', 130, 64)
		p.b.WriteString(text)
		if p.r.IntN(2) == 0 {
			p.digits(3)
		}
	case 3: // money
		p.b.WriteString(strconv.FormatFloat(float64(p.r.IntN(1_000_000))/1000, 'f', 3, 64))
	case 4: // halves of decimals
		p.b.WriteString(strconv.Itoa(p.r.IntN(1000)) + "." + strconv.Itoa(p.r.IntN(100)) + "5")
	default:
		p.integer()
		if p.r.IntN(2) == 0 {
			p.b.WriteByte('.')
			p.digits(22)
		}
		p.b.WriteString([]string{"e", "E", "e+", "e-", "E-0"}[p.r.IntN(5)])
		p.digits(3)
	}
}

func (p *payloads) text() {
	p.b.WriteByte('"')
	for range p.r.IntN(1 + p.r.IntN(14)) {
		switch p.r.IntN(10) {
		case 0:
			p.b.WriteString([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`, "\x7f", "<>&'"}[p.r.IntN(10)])
		case 1: // any unit of UTF-16
			_, _ = fmt.Fprintf(&p.b, []string{`\u%04x`, `\u%04X`}[p.r.IntN(2)], p.r.IntN(0x10000))
		case 2: // surrogates, so that some meet
			_, _ = fmt.Fprintf(&p.b, `\u%04x`, 0xd800+p.r.IntN(0x800))
		case 3: // surrogates as bytes
			n := p.r.IntN(0x800)
			p.b.Write([]byte{0xed, byte(0xa0 + n>>6), byte(0x80 + n&0x3f)})
		case 4: // any character
			if r := rune(0x20 + p.r.IntN(0x10ffff-0x20)); utf8.ValidRune(r) && r != '"' && r != '\\' {
				p.b.WriteRune(r)
			}
		default:
			p.b.WriteByte("abcABC019_ "[p.r.IntN(11)])
		}
	}
	p.b.WriteByte('"')
}
