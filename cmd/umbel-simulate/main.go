// Command umbel-simulate runs a simulated Celery cluster on a Redis of its own, which Umbel can watch and real workers can
// join. It listens on loopback addresses only: the Redis is miniredis, which clients can crash.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/umbelhq/umbel/monitor/simulate"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:6399", "loopback address of the Redis")
	seed := flag.Uint64("seed", 1, "seed of the simulation")
	rate := flag.Float64("rate", 20, "tasks per second")
	flag.Parse()
	o := simulate.Options{Seed: *seed, Rate: *rate, Start: time.Now()}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen, o, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "umbel-simulate:", err)
		os.Exit(1)
	}
}

// run simulates o on a Redis at address until ctx ends.
func run(ctx context.Context, address string, o simulate.Options, log *slog.Logger) error {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return fmt.Errorf("-listen %s: %w", address, err)
	}
	if !addr.IP.IsLoopback() {
		return fmt.Errorf("-listen %s: not a loopback address", address)
	}
	c, err := newCluster(addr.String(), o, log)
	if err != nil {
		return err
	}
	defer c.server.Close()
	url := "redis://" + c.server.Addr() + "/0"
	log.Info("broker ready", "url", url, "watch", "umbel serve --broker-url "+url, "join", "celery -A yourapp -b "+url+" worker -E")
	return c.run(ctx)
}
