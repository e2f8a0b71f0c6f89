package idempotency_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// TestFingerprintsAgreeWithPython compares the Python package umbel with this one on the same calls, with fields that count and
// fields that do not. Both must refuse the same paths.
func TestFingerprintsAgreeWithPython(t *testing.T) {
	t.Parallel()
	const calls = 5_000
	var in bytes.Buffer
	var want []string
	refused := 0
	for g := newCalls(); len(want) < calls; {
		c := g.next()
		options, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&in, "{%s,\"args\":%s,\"kwargs\":%s}\n", bytes.Trim(options, "{}"), c.args, c.kwargs)
		want = append(want, c.fingerprint(t))
		if want[len(want)-1] == "!" {
			refused++
		}
	}
	c := umbelPython(t, "fingerprints.py")
	c.Stdin = bytes.NewReader(in.Bytes())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&in)
	answers := bufio.NewScanner(bytes.NewReader(out))
	wrong := 0
	for i, w := range want {
		if !lines.Scan() || !answers.Scan() {
			t.Fatalf("Python answered %d of %d calls", i, calls)
		}
		if got := answers.Text(); got != w {
			t.Errorf("%s\nPython %s\nGo     %s", lines.Bytes(), got, w)
			if wrong++; wrong > 5 {
				t.FailNow()
			}
		}
	}
	if refused < calls/50 || refused > calls/3 {
		t.Errorf("%d of %d were refused: the paths are not what they should be", refused, calls)
	}
}

// calledTask is a call as the script reads it.
type calledTask struct {
	Task      string   `json:"task"`
	Only      []string `json:"only"`
	Without   []string `json:"without"`
	Precision *int     `json:"precision"`

	args, kwargs string // JSON, which may hold NaN
}

// fingerprint is what the Go package makes of a call.
func (c calledTask) fingerprint(t *testing.T) string {
	t.Helper()
	f, err := idempotency.New(idempotency.Options{Only: c.Only, Without: c.Without, Precision: c.Precision})
	if err != nil {
		return "!"
	}
	args, err := idempotency.Parse([]byte(c.args))
	if err != nil {
		t.Fatal(err)
	}
	kwargs, err := idempotency.Parse([]byte(c.kwargs))
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, err := f.Call(c.Task, args, kwargs)
	if err != nil {
		t.Fatal(err)
	}
	return fingerprint
}

// calls makes calls whose keys are few, so that paths lead somewhere; the same ones each time.
type calls struct{ r *rand.Rand }

func newCalls() *calls { return &calls{rand.New(rand.NewPCG(3, 4))} }

func (g *calls) next() calledTask {
	c := calledTask{
		Task: "shop.ü" + strconv.Itoa(g.r.IntN(3)), args: g.array(g.r.IntN(3)), kwargs: g.object(3),
		Only: []string{}, Without: []string{},
	}
	for range g.r.IntN(3) {
		c.Only = append(c.Only, g.path())
	}
	for range g.r.IntN(3) {
		c.Without = append(c.Without, g.path())
	}
	if g.r.IntN(3) == 0 {
		c.Precision = new(g.r.IntN(17))
	}
	return c
}

// key returns a key as JSON and as a part of a path.
func (g *calls) key() (text, part string) {
	keys := [][2]string{
		{`"a"`, "a"},
		{`"a"`, `["a"]`},
		{`"b_1"`, "b_1"},
		{`"-"`, "-"},
		{`"é"`, "é"},
		{`"x.y"`, `["x.y"]`},
		{`""`, `[""]`},
		{`"\ud83d"`, `["\ud83d"]`},
		{`"0"`, "0"},
		{`"\n\""`, `["\n\""]`},
	}
	k := keys[g.r.IntN(len(keys))]
	return k[0], k[1]
}

func (g *calls) path() string {
	path := ""
	for range 1 + g.r.IntN(3) {
		switch g.r.IntN(4) {
		case 0:
			path += fmt.Sprintf("[%d]", g.r.IntN(3))
		case 1:
			path += "[*]"
		default:
			_, part := g.key()
			if path != "" && part[0] != '[' {
				path += "."
			}
			path += part
		}
	}
	if g.r.IntN(10) == 0 { // damaged
		text := []rune(path)
		at := g.r.IntN(len(text))
		wrong := []string{".", "[", "]", `"`, "[01]", "[-1]", "[]", " ", "a", `["a]`, "\\"}
		path = string(text[:at]) + wrong[g.r.IntN(len(wrong))] + string(text[at:])
	}
	return path
}

func (g *calls) value(depth int) string {
	if depth > 0 && g.r.IntN(2) == 0 {
		return []func(int) string{g.array, g.object}[g.r.IntN(2)](depth - 1)
	}
	values := []string{
		"null", "true", "17", "17.0", "-0.0", "2.675", "0.125", "1e16", "1.005", "NaN", "-Infinity", `"a"`, `"ü😀\ud83d\u0000"`,
		"123456789012345678901234567890", strconv.FormatFloat(g.r.Float64(), 'f', -1, 64), strconv.FormatFloat(g.r.NormFloat64()*1e6, 'e', -1, 64),
	}
	return values[g.r.IntN(len(values))]
}

func (g *calls) array(depth int) string {
	text := "["
	for i := range g.r.IntN(4) {
		if i > 0 {
			text += ","
		}
		text += g.value(depth)
	}
	return text + "]"
}

func (g *calls) object(depth int) string {
	text := "{"
	for i := range g.r.IntN(5) {
		if i > 0 {
			text += ","
		}
		key, _ := g.key()
		text += key + ":" + g.value(depth)
	}
	return text + "}"
}
