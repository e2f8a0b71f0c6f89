package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/sharedbroker"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	maxDemoNodes = 9
	// restartAfter is longer than another node takes to lead, so that one that is killed shows it.
	restartAfter = 10 * time.Second
)

// demoNodeEnv is the variable by which a process of a demo learns that it is one of several nodes, and which.
const demoNodeEnv = "UMBEL_DEMO_NODE"

// demoNode is one of the nodes of a demo, a process of its own.
type demoNode struct {
	Name   string
	Listen string
	Socket string         // of the simulated broker
	Marks  []history.Mark // of deploys; one node adds them
}

// runNodes simulates a cluster and starts processes that watch it, until ctx ends.
func (c *demoCmd) runNodes(ctx context.Context, log *slog.Logger) error {
	nodes, err := c.nodes()
	if err != nil {
		return usageError{err}
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	start, deploys := time.Now().Add(-backlog(c.Rate)), demoDeploys(backlog(c.Rate))
	s, err := newSimulation(c.simulated(start, deploys))
	if err != nil {
		return usageError{err}
	}
	dir, err := os.MkdirTemp("", "umbel-demo-")
	if err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "broker")
	l, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("--nodes: %w", err)
	}
	shared := sharedbroker.New(s.broker)
	serving, stop := context.WithCancel(context.WithoutCancel(ctx)) // nodes end first
	defer stop()
	var broker errgroup.Group
	broker.Go(func() error { return shared.Run(serving, l) })
	g, ctx := errgroup.WithContext(ctx)
	joined := make(chan struct{})
	g.Go(func() error { // no node misses what is simulated
		if shared.Joined(ctx, len(nodes)) != nil {
			return nil // ctx has ended
		}
		close(joined)
		return s.run(ctx)
	})
	for i := range nodes {
		n := &nodes[i]
		if n.Socket = socket; i == 0 {
			n.Marks = demoMarks(start, deploys)
		}
		g.Go(func() error { return n.keep(ctx, program, joined, log) })
	}
	err = g.Wait()
	stop()
	return errors.Join(err, broker.Wait())
}

// nodes returns the nodes, on addresses whose ports follow each other. Its error is one sentence.
func (c *demoCmd) nodes() ([]demoNode, error) {
	if c.History == "" {
		return nil, errors.New("--nodes: several nodes share a history in PostgreSQL, since a directory cannot be shared: add --history postgres://user:password@host/database")
	}
	host, text, err := net.SplitHostPort(c.Listen)
	port, wrong := strconv.ParseUint(text, 10, 16)
	if err != nil || wrong != nil {
		return nil, fmt.Errorf("--nodes: --listen %s has no port that those of further nodes could follow: write host:port", c.Listen)
	}
	nodes := make([]demoNode, c.Nodes)
	for i := range nodes {
		at := port + uint64(i)
		if port == 0 { // any that is free
			at = 0
		}
		nodes[i] = demoNode{Name: strconv.Itoa(i + 1), Listen: net.JoinHostPort(host, strconv.FormatUint(at, 10))}
	}
	return nodes, nil
}

// keep runs the process of a node until ctx ends, and again after one that has ended. Before all have joined, the end of one is that
// of the demo: it could not start.
func (n *demoNode) keep(ctx context.Context, program string, joined <-chan struct{}, log *slog.Logger) error {
	for {
		err := n.run(ctx, program, log)
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-joined:
		default:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 { // it has said why
				return exitError(exit.ExitCode())
			}
			return fmt.Errorf("node %s has ended: %w", n.Name, err)
		}
		n.Marks = nil // they have been added
		log.Warn("node has ended, and is started again", "node", n.Name, "after", restartAfter, "error", err)
		select {
		case <-time.After(restartAfter):
		case <-ctx.Done():
			return nil
		}
	}
}

// run runs the process until it ends or ctx does. It has the arguments and the environment of this one, and ends with it: its
// standard input does.
func (n *demoNode) run(ctx context.Context, program string, log *slog.Logger) error {
	self, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	cmd := exec.CommandContext(ctx, program, os.Args[1:]...) //nolint:gosec // this program, as it was started
	cmd.Env = append(os.Environ(), demoNodeEnv+"="+string(self))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	life, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	cmd.Cancel, cmd.WaitDelay = life.Close, 2*drain
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	log.Info("node started", "node", n.Name, "pid", cmd.Process.Pid)
	return cmd.Wait() //nolint:wrapcheck // its status is asked for
}

// node returns the node that this process is, nil if it is none.
func (*demoCmd) node() (*demoNode, error) {
	text := os.Getenv(demoNodeEnv)
	if text == "" {
		return nil, nil
	}
	n := new(demoNode)
	if err := json.Unmarshal([]byte(text), n); err != nil {
		return nil, usageError{fmt.Errorf("$%s: umbel demo --nodes sets it for the processes that it starts: %w", demoNodeEnv, err)}
	}
	return n, nil
}

// runNode watches the cluster that another process simulates, until that one or ctx ends.
func (c *demoCmd) runNode(ctx context.Context, n *demoNode, in io.Reader, log *slog.Logger) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	c.Listen = n.Listen
	o := dashboard.Options{
		History: c.History, Node: n.Name, Version: versionString(), Demo: true, Broker: sharedbroker.Dial(n.Socket), Marks: n.Marks,
	}
	return c.serve(ctx, o, log.With("pid", os.Getpid()))
}
