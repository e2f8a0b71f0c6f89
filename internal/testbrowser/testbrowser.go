// Package testbrowser shares one Chromium among the tests of a package, since starting it costs more than most of
// them. No code outside tests may import it.
package testbrowser

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testenv"
)

var shared struct { //nolint:gochecknoglobals // the tests of a package are one process
	sync.Mutex
	browser context.Context //nolint:containedctx // chromedp's browsers and tabs are contexts
	stop    func()
}

// Main runs the tests, then stops the browser. It returns the exit status for os.Exit.
func Main(m *testing.M) int {
	status := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.stop != nil {
		shared.stop()
	}
	return status
}

// Open returns the Chromium of all tests, in which each opens tabs of its own. The first test that asks starts it.
func Open(t testing.TB) context.Context {
	t.Helper()
	path := testenv.Chromium(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.browser != nil {
		return shared.browser
	}
	dir, err := os.MkdirTemp("", "umbel-chromium-") //nolint:usetesting // it outlives the test
	if err != nil {
		t.Fatalf("make a directory for the browser: %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(dir))
	process, kill := chromedp.NewExecAllocator(context.Background(), options...)
	browser, quit := chromedp.NewContext(process)
	shared.stop = func() {
		quit()
		kill()
		_ = os.RemoveAll(dir)
	}
	if err := chromedp.Do(browser); err != nil {
		shared.stop()
		shared.stop = nil
		t.Fatalf("start Chromium: %v", err)
	}
	shared.browser = browser //nolint:fatcontext // kept for the next test
	return browser
}
