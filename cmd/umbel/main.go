// Command umbel is the live dashboard for Celery.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker; without it, the module's own is used.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal kills
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
