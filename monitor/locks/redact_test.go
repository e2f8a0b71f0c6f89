package locks_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/locks"
)

// Locks whose keys hold secrets are shown without, apart from each other, and released by what is shown.
func TestKeysAreRedacted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		const one, two = "qo_shop.pay_api_key-hunterzwei_n-1", "qo_shop.pay_api_key-hunterdrei_n-1"
		s.Set(one, "password=hunterzwei", time.Now().Add(time.Hour), true)
		s.Set(two, "2", time.Now().Add(time.Hour), true)
		list := s.Snapshot(t.Context()).Locks
		if len(list) != 2 || list[0].Key == list[1].Key || strings.Contains(list[0].Key+list[0].Value+list[1].Key+list[1].Value, "hunter") {
			t.Fatalf("locks are shown as %+v", list)
		}
		for _, l := range list {
			found, ok, err := s.Find(t.Context(), l.Key)
			if err != nil || !ok || found.Key != l.Key || found.Version != l.Version {
				t.Fatalf("Find(%s) = %+v, %v, %v", l.Key, found, ok, err)
			}
			if outcome, err := s.Watcher.Release(t.Context(), found.Seen()); outcome != locks.Released || err != nil {
				t.Errorf("Release of %s: %v, %v", l.Key, outcome, err)
			}
		}
		if _, ok, err := s.Find(t.Context(), list[0].Key); ok || err != nil {
			t.Errorf("the lock is there after its release: %v", err)
		}
	})
}
