package live_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

func TestFirstFrameHoldsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("overview", fragments("a", `<p id="a">"1" & <b>2</b></p>`), live.List{ID: "l", Rows: fragments("x", "<tr>x</tr>")})
		c := s.dial("overview")
		got := c.frame(t.Context())
		if !got.Reset || got.Seq != 1 || got.Epoch == "" {
			t.Errorf("first frame = %+v, want a reset frame with seq 1 and an epoch", got)
		}
		if want := s.topics["overview"]; !c.model.equal(want) {
			t.Errorf("model = %+v, want %+v", c.model, want)
		}
	})
}

func TestFramesHoldOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	row := func(id, text string) []string { return []string{id, "<tr>" + text + "</tr>"} }
	rows := func(rr ...[]string) []live.Fragment {
		var pairs []string
		for _, r := range rr {
			pairs = append(pairs, r...)
		}
		return fragments(pairs...)
	}
	before := live.Snapshot{
		Regions: fragments("a", "1", "b", "2"),
		Lists:   []live.List{{ID: "l", Rows: rows(row("x", "x"), row("y", "y"))}},
	}
	type ops = map[string]any
	tests := map[string]struct {
		regions []live.Fragment
		lists   []live.List
		want    ops
		reset   bool
	}{
		"region": {
			regions: fragments("a", "1", "b", "3"), lists: before.Lists,
			want: ops{"b": "3"},
		},
		"row in place": {
			regions: before.Regions, lists: []live.List{{ID: "l", Rows: rows(row("x", "x"), row("y", "z"))}},
			want: ops{"l": ops{"y": "<tr>z</tr>"}},
		},
		"new row on top": {
			regions: before.Regions, lists: []live.List{{ID: "l", Rows: rows(row("n", "n"), row("x", "x"))}},
			want: ops{"l": ops{"n": "<tr>n</tr>"}, "l order": []any{"n", []any{0.0, 1.0}}},
		},
		"rows move": {
			regions: before.Regions, lists: []live.List{{ID: "l", Rows: rows(row("y", "y"), row("x", "x"))}},
			want: ops{"l": ops{}, "l order": []any{[]any{1.0, 1.0}, []any{0.0, 1.0}}},
		},
		"rows leave": {
			regions: before.Regions, lists: []live.List{{ID: "l", Rows: rows(row("x", "x"), row("y", "y"), row("z", "z"))}},
			want: ops{"l": ops{"z": "<tr>z</tr>"}, "l order": []any{[]any{0.0, 2.0}, "z"}},
		},
		"all rows gone": {
			regions: before.Regions, lists: []live.List{{ID: "l"}},
			want: ops{"l": ops{}, "l order": []any{}},
		},
		"another layout": {
			regions: fragments("a", "1"), lists: before.Lists,
			want: ops{"a": "1", "l": ops{"x": "<tr>x</tr>", "y": "<tr>y</tr>"}, "l order": []any{"x", "y"}}, reset: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				s.set("t", before.Regions, before.Lists...)
				c := s.dial("t")
				first := c.frame(t.Context())
				s.set("t", test.regions, test.lists...)
				f := c.frame(t.Context())
				if f.Reset != test.reset || f.Seq != 2 || f.Epoch != first.Epoch {
					t.Errorf("frame has reset %v, seq %d, epoch %q, want %v, 2, %q", f.Reset, f.Seq, f.Epoch, test.reset, first.Epoch)
				}
				got := ops{}
				for _, o := range f.Ops {
					if o.HTML != "" {
						got[o.ID] = o.HTML
						continue
					}
					rows := ops{}
					maps.Copy(rows, o.Rows)
					got[o.ID] = rows
					if o.Order != nil {
						got[o.ID+" order"] = o.Order
					}
				}
				if d := cmp.Diff(got, test.want); d != "" {
					t.Errorf("ops (-got +want):\n%s", d)
				}
			})
		})
	}
}

func TestFramesHoldOnlyCellsThatChanged(t *testing.T) {
	t.Parallel()
	const before = `<tr id="x"><td>1</td><td class="c">2</td></tr>`
	for row, want := range map[string]any{
		`<tr id="x"><td>1</td><td class="c">3</td></tr>`:           map[string]any{"1": `<td class="c">3</td></tr>`},
		`<tr id="x"><td>4</td><td class="d">2</td></tr>`:           map[string]any{"0": `<td>4</td>`, "1": `<td class="d">2</td></tr>`},
		`<tr id="x" class="y"><td>1</td><td class="c">2</td></tr>`: `<tr id="x" class="y"><td>1</td><td class="c">2</td></tr>`,
		`<tr id="x"><td>1</td><td class="c">2</td><td>3</td></tr>`: `<tr id="x"><td>1</td><td class="c">2</td><td>3</td></tr>`,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, live.Options{})
			s.set("t", nil, live.List{ID: "l", Rows: fragments("x", before)})
			c := s.dial("t")
			c.frame(t.Context())
			s.set("t", nil, live.List{ID: "l", Rows: fragments("x", row)})
			if diff := cmp.Diff(c.frame(t.Context()).Ops[0].Rows["x"], want); diff != "" {
				t.Errorf("row of the frame (-got +want):\n%s", diff)
			}
			if !c.model.equal(s.topics["t"]) {
				t.Errorf("model = %+v, want %+v", c.model, s.topics["t"])
			}
		})
	}
}

// A page that was served need not be sent again.
func TestFirstFrameLeadsFromThePage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		page  string
		age   time.Duration
		reset bool
		ops   int
	}{
		"of the same page":    {"first", 0, false, 1},
		"of the newest page":  {"second", 0, false, 0},
		"of an unknown page":  {"third", 0, true, 2},
		"of another's page":   {"other", 0, true, 2},
		"of a page long gone": {"first", time.Minute, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				s.hub.Remember(auth.Everything, "t", "first", live.Snapshot{Regions: fragments("a", "1", "b", "2")})
				s.hub.Remember(auth.Everything, "t", "second", live.Snapshot{Regions: fragments("a", "1", "b", "3")})
				s.hub.Remember(auth.Everything, "u", "other", live.Snapshot{Regions: fragments("a", "1", "b", "3")})
				s.set("t", fragments("a", "1", "b", "3"))
				<-time.After(test.age)
				c := &client{t: t, topic: "t", page: test.page, model: model{regions: map[string]string{"a": "1", "b": "2"}}}
				s.redial(c)
				f := c.frame(t.Context())
				if f.Reset != test.reset || len(f.Ops) != test.ops || f.Seq != 1 {
					t.Errorf("first frame has reset %v, %d ops, seq %d, want %v, %d, 1", f.Reset, len(f.Ops), f.Seq, test.reset, test.ops)
				}
				if !test.reset && f.Page != test.page {
					t.Errorf("frame leads from page %q, want %q", f.Page, test.page)
				}
				s.set("t", fragments("a", "1", "b", "4"))
				if f = c.frame(t.Context()); f.Reset || len(f.Ops) != 1 || c.model.regions["b"] != "4" {
					t.Errorf("next frame = %+v, want the change", f)
				}
			})
		})
	}
}

func TestFourFramesASecondAndTheLastOneCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		c.frame(t.Context())
		base := s.rendered("t")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		go func() {
			for i := range 2000 {
				<-tick.C
				s.set("t", fragments("n", fmt.Sprint(i)))
			}
		}()
		start := time.Now()
		first := c.frame(t.Context())
		if got, want := time.Since(start), 250*time.Millisecond; got > want {
			t.Errorf("first change shown after %v, want at most %v", got, want)
		}
		frames := 1
		for c.model.regions["n"] != "1999" {
			c.frame(t.Context())
			frames++
		}
		if frames > 9 {
			t.Errorf("%d frames in 2 s, want at most 9", frames)
		}
		if got := s.rendered("t") - base; got > 10 {
			t.Errorf("%d renderings in 2 s, want at most 10", got)
		}
		if got, want := time.Since(start), 2300*time.Millisecond; got > want {
			t.Errorf("last change shown after %v, want at most %v", got, want)
		}
		if !first.Reset && first.Seq != 2 {
			t.Errorf("first change has seq %d, want 2", first.Seq)
		}
	})
}

func TestSlowTopicsAreRenderedATenthOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.slow = 200 * time.Millisecond
		c := s.dial("t")
		c.frame(t.Context())
		start := time.Now()
		for i := range 3 {
			s.set("t", fragments("a", fmt.Sprint(i)))
			c.frame(t.Context())
			// 1.8 s of rest, 0.2 s of work.
			if got, want := time.Since(start), time.Duration(i+1)*2*time.Second; got != want {
				t.Errorf("frame %d came after %v, want %v", i, got, want)
			}
		}
	})
}

func TestChangeAfterSilenceIsShownAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		c.frame(t.Context())
		<-time.After(time.Second)
		start := time.Now()
		s.set("t", fragments("n", "1"))
		c.frame(t.Context())
		if got := time.Since(start); got != 0 {
			t.Errorf("shown after %v, want at once", got)
		}
	})
}

func TestOneRenderingServesAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("t", fragments("n", "0"))
		var clients []*client
		for range 20 {
			c := s.dial("t")
			c.frame(t.Context())
			clients = append(clients, c)
		}
		base := s.rendered("t")
		for i := range 5 {
			<-time.After(time.Second)
			s.set("t", fragments("n", fmt.Sprint(i+1)))
			for _, c := range clients {
				c.frame(t.Context())
			}
		}
		if got := s.rendered("t") - base; got != 5 {
			t.Errorf("%d renderings of 5 changes for 20 sockets, want 5", got)
		}
	})
}

func TestTopicsRestWithoutSubscribers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		c.frame(t.Context())
		_ = c.conn.CloseNow()
		synctest.Wait()
		base := s.rendered("t")
		for i := range 10 {
			<-time.After(time.Second)
			s.set("t", fragments("n", fmt.Sprint(i)))
		}
		if got := s.rendered("t"); got != base {
			t.Errorf("%d renderings without subscribers, want 0", got-base)
		}
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		watched bool          // somebody else watches meanwhile
		others  int           // topics that are watched besides
		changes int           // meanwhile, one a second
		away    time.Duration // besides
		size    int           // bytes of each change
		resets  int           // expected after the first
		frames  int           // expected after the first
	}{
		"nothing missed":                {watched: true},
		"missed frames are replayed":    {watched: true, changes: 10, frames: 10},
		"nobody watched":                {changes: 10, frames: 1},
		"away for too long":             {watched: true, changes: 1, away: 2 * time.Minute, frames: 1},
		"frames too old":                {watched: true, changes: 100, resets: 1, frames: 1},
		"nobody watched, topic expired": {changes: 1, away: 2 * time.Minute, resets: 1, frames: 1},
		"frames beyond the byte limit":  {watched: true, changes: 8, size: 1 << 20, resets: 1, frames: 1},
		"frames just in the byte limit": {watched: true, changes: 3, size: 1 << 20, frames: 3},
		"topics share the byte limit":   {watched: true, others: 99, changes: 3, size: 1 << 19, resets: 1, frames: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				set := func(i int) {
					s.set("t", fragments("n", fmt.Sprint(i)+noise(test.size)), live.List{ID: "l", Rows: fragments("r", fmt.Sprint(i))})
				}
				set(-1)
				if test.watched {
					other := s.dial("t")
					go func() {
						for {
							if _, err := other.read(t.Context()); err != nil {
								return
							}
						}
					}()
				}
				for i := range test.others {
					s.dial(fmt.Sprint("t", i)).frame(t.Context())
				}
				c := s.dial("t")
				c.frame(t.Context())
				resets, frames := c.model.resets, c.model.frames
				_ = c.conn.CloseNow()
				synctest.Wait()
				for i := range test.changes {
					<-time.After(time.Second)
					set(i)
				}
				<-time.After(test.away)
				s.redial(c)
				for range test.frames {
					c.frame(t.Context())
				}
				quiet(t, c)
				if got := c.model.resets - resets; got != test.resets {
					t.Errorf("%d resets, want %d", got, test.resets)
				}
				if got := c.model.frames - frames; got != test.frames {
					t.Errorf("%d frames, want %d", got, test.frames)
				}
				if want := s.topics["t"]; !c.model.equal(want) {
					t.Errorf("model differs from the source after resuming")
				}
			})
		})
	}
}

// noise is a text of n bytes that deflate makes hardly shorter.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return base64.StdEncoding.EncodeToString(b)[:n]
}

// quiet fails if the server sends a frame within a second. It ends the socket.
func quiet(t *testing.T, c *client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for {
		m, err := c.read(ctx)
		if err != nil {
			return
		}
		if m.Frame {
			t.Errorf("unexpected frame %d", m.Seq)
		}
	}
}

func TestForeignPositionsGetAReset(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r *livetest.Reader){
		"other epoch":       func(r *livetest.Reader) { r.Epoch = "other" },
		"seq of the future": func(r *livetest.Reader) { r.Seq = 99 },
		"no seq":            func(r *livetest.Reader) { r.Seq = 0 },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				s.set("t", fragments("n", "1"))
				c := s.dial("t")
				c.frame(t.Context())
				spoil(&c.reader)
				s.redial(c)
				if f := c.frame(t.Context()); !f.Reset || f.Seq != 1 {
					t.Errorf("frame = %+v, want a reset to seq 1", f)
				}
			})
		})
	}
}

// A page is rendered at some version; the first frame for it must not show an older one.
func TestResetIsNeverOlderThanTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("t", fragments("n", "old"))
		first := s.dial("t")
		first.frame(t.Context())
		s.set("t", fragments("n", "new")) // within 250 ms: not rendered yet
		c := s.dial("t")
		c.frame(t.Context())
		if got, want := c.model.regions["n"], "new"; got != want {
			t.Errorf("first frame shows %q, want %q", got, want)
		}
	})
}

func TestStalledReaderHarmsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("t", fragments("n", "0"))
		stalled := s.dial("t")
		stalled.frame(t.Context()) // and never again
		c := s.dial("t")
		c.frame(t.Context())
		for i := range 100 {
			<-time.After(250 * time.Millisecond)
			s.set("t", fragments("n", fmt.Sprint(i+1)))
			start := time.Now()
			c.frame(t.Context())
			if got := time.Since(start); got > 0 {
				t.Fatalf("change %d took %v beside a stalled reader, want 0", i, got)
			}
		}
		var err error
		for err == nil {
			_, err = stalled.read(t.Context())
		}
		if got, want := stalled.model.frames, 10; got > want {
			t.Errorf("stalled reader was kept for %d frames, want it dropped after 10 s", got)
		}
	})
}

func TestSlowReaderSkipsToTheNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		page := noise(1 << 20)
		s.set("t", fragments("n", page))
		c := s.dial("t")
		c.frame(t.Context())
		for range 8 { // more than the ring holds, within the write timeout
			<-time.After(500 * time.Millisecond)
			s.change(func() { s.topics["t"] = live.Snapshot{Regions: fragments("n", fmt.Sprint(s.version)+page)} })
		}
		for !c.model.equal(s.topics["t"]) {
			c.frame(t.Context())
		}
		if got, want := c.model.frames, 6; got > want {
			t.Errorf("slow reader got %d frames, want at most %d", got, want)
		}
		if got, want := c.model.resets, 2; got != want {
			t.Errorf("slow reader had %d resets, want %d", got, want)
		}
	})
}
