package historytest

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func views() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Views are kept":                  storeTest.viewsKept,
		"Views are bounded":               storeTest.viewsBounded,
		"Views come by name":              storeTest.viewsByName,
		"Views that are gone stay gone":   storeTest.viewsDeleted,
		"Views of hostile texts are kept": storeTest.viewsHostile,
	}
}

func (c storeTest) views() []history.View {
	c.Helper()
	all, err := c.Views(c.Context())
	if err != nil {
		c.Fatalf("views: %v", err)
	}
	return all
}

func (c storeTest) save(v history.View) history.View {
	c.Helper()
	saved, err := c.SaveView(c.Context(), v)
	if err != nil {
		c.Fatalf("save view %+v: %v", v, err)
	}
	if saved.ID == "" {
		c.Fatal("a saved view has no id")
	}
	return saved
}

func (c storeTest) viewsKept() {
	if got := c.views(); len(got) > 0 {
		c.Errorf("views of an empty history = %+v", got)
	}
	v := history.View{Name: "Slow payments", Query: "name:billing.* run:>2s", Sort: "-run", Columns: "name,run"}
	v.ID = c.save(v).ID
	c.reopen()
	if diff := cmp.Diff([]history.View{v}, c.views()); diff != "" {
		c.Errorf("views (-want +got):\n%s", diff)
	}
	v.Name, v.Query, v.Sort, v.Columns = "Payments", "name:billing.*", "", ""
	if diff := cmp.Diff(v, c.save(v)); diff != "" {
		c.Errorf("view saved again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]history.View{v}, c.views()); diff != "" {
		c.Errorf("views (-want +got):\n%s", diff)
	}
}

// viewsBounded saves more views at once than are kept.
func (c storeTest) viewsBounded() {
	const more = 20
	var saving sync.WaitGroup
	var full atomic.Int64
	for i := range history.MaxViews + more {
		saving.Go(func() {
			_, err := c.SaveView(c.Context(), history.View{Name: strconv.Itoa(i)})
			switch {
			case errors.Is(err, history.ErrTooManyViews):
				full.Add(1)
			case err != nil:
				c.Errorf("save view: %v", err)
			}
		})
	}
	saving.Wait()
	all := c.views()
	if len(all) != history.MaxViews || full.Load() != more {
		c.Errorf("%d views are kept and %d refused, want %d and %d", len(all), full.Load(), history.MaxViews, more)
	}
	all[0].Name = "changed"
	c.save(all[0])
}

func (c storeTest) viewsByName() {
	for _, name := range []string{"b", "c", "a", "b"} {
		c.save(history.View{Name: name})
	}
	var got []string
	ids := make(map[string]bool)
	for _, v := range c.views() {
		got = append(got, v.Name)
		ids[v.ID] = true
	}
	if diff := cmp.Diff([]string{"a", "b", "b", "c"}, got); diff != "" || len(ids) != 4 {
		c.Errorf("%d ids, want 4; names (-want +got):\n%s", len(ids), diff)
	}
}

func (c storeTest) viewsDeleted() {
	v := c.save(history.View{Name: "a"})
	if err := c.DeleteView(c.Context(), v.ID); err != nil {
		c.Fatalf("delete view: %v", err)
	}
	for _, id := range []string{v.ID, "", "0", "-1", "no id", "99999999999999999999"} {
		if err := c.DeleteView(c.Context(), id); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("delete view %q: error %v, want %v", id, err, history.ErrNotFound)
		}
		if id == "" {
			continue
		}
		if _, err := c.SaveView(c.Context(), history.View{ID: id, Name: "b"}); !errors.Is(err, history.ErrNotFound) {
			c.Errorf("save view %q: error %v, want %v", id, err, history.ErrNotFound)
		}
	}
	c.reopen()
	if next := c.save(history.View{Name: "a"}); next.ID == v.ID {
		c.Errorf("a new view has the id %q of one that is gone", next.ID)
	}
}

func (c storeTest) viewsHostile() {
	want := make(map[string]history.View)
	for _, text := range hostile() {
		v := c.save(history.View{Name: text, Query: text, Sort: text, Columns: text})
		want[v.ID] = v
	}
	c.reopen()
	got := make(map[string]history.View)
	for _, v := range c.views() {
		got[v.ID] = v
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.Errorf("views (-want +got):\n%s", diff)
	}
}
