package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Bounds of what clients of the demo's Redis send.
const (
	maxRedisClients = 256
	maxRedisArgs    = 4_096    // of one command
	maxRedisCommand = 16 << 20 // bytes of one command
)

// redisCommands are those that Celery, Umbel and people who look use. miniredis is made for tests: others can end it, and
// the process with it.
const redisCommands = `AUTH BLPOP BRPOP CLIENT CONFIG COMMAND DBSIZE DECR DECRBY DEL DISCARD ECHO EVAL EVALSHA EXEC EXISTS EXPIRE EXPIREAT FLUSHDB GET GETRANGE HDEL
	HELLO HEXISTS HGET HGETALL HKEYS HLEN HMGET HSCAN HSET HSETNX INCR INCRBY INFO KEYS LINDEX LLEN LMOVE LPOP LPUSH LRANGE LREM MGET
	MULTI PERSIST PEXPIRE PING PSUBSCRIBE PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RPOP RPOPLPUSH RPUSH SADD SCAN SCARD SCRIPT SELECT
	SET SETEX SETNX SISMEMBER SMEMBERS SREM SSCAN STRLEN SUBSCRIBE TIME TTL TYPE UNLINK UNSUBSCRIBE UNWATCH WATCH ZADD ZCARD
	ZCOUNT ZRANGE ZRANGEBYSCORE ZREM ZREVRANGEBYSCORE ZSCORE`

// redisDoor lets clients into a miniredis, which listens nowhere itself: it makes slices as long as a client says and
// panics where that is too much. What passes is well-formed and bounded.
type redisDoor struct {
	listener net.Listener
	server   *miniredis.Miniredis
	log      *slog.Logger
	known    []string
}

// openDoor listens at address.
func openDoor(ctx context.Context, address string, server *miniredis.Miniredis, log *slog.Logger) (*redisDoor, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &redisDoor{listener: listener, server: server, log: log, known: strings.Fields(redisCommands)}, nil
}

// run serves clients until ctx ends.
func (d *redisDoor) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = d.listener.Close() })
	defer stop()
	places := make(chan struct{}, maxRedisClients)
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		conn, err := d.listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("serve Redis: %w", err)
		}
		select {
		case places <- struct{}{}:
			clients.Go(func() {
				defer func() { <-places }()
				d.serve(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

// serve passes commands of a client on, and the replies back.
func (d *redisDoor) serve(ctx context.Context, conn net.Conn) {
	inside, err := d.server.Dial()
	if err != nil {
		_ = conn.Close()
		return
	}
	shut := sync.OnceFunc(func() {
		_ = conn.Close()
		_ = inside.Close()
	})
	defer context.AfterFunc(ctx, shut)()
	var replies sync.WaitGroup
	replies.Go(func() {
		defer shut()
		_, _ = io.Copy(conn, inside)
	})
	defer replies.Wait()
	defer shut()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				d.log.Debug("command of a Redis client not understood", "error", err)
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, _ = io.WriteString(conn, "-ERR Protocol error\r\n")
			}
			return
		}
		if !slices.Contains(d.known, strings.ToUpper(string(args[0]))) {
			args[0] = []byte("not-offered:" + string(args[0][:min(len(args[0]), 64)])) // miniredis says so, in turn
		}
		if _, err := inside.Write(appendCommand(nil, args)); err != nil {
			return
		}
	}
}

// errCommand says that a client does not speak the protocol, or says too much.
var errCommand = errors.New("not a Redis command within bounds")

// readCommand reads an array of bulk strings, the command first.
func readCommand(r *bufio.Reader) ([][]byte, error) {
	n, err := readLength(r, '*', maxRedisArgs)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errCommand
	}
	left := maxRedisCommand
	args := make([][]byte, n)
	for i := range args {
		length, err := readLength(r, '$', left)
		if err != nil {
			return nil, err
		}
		left -= length
		var b bytes.Buffer // grows with what comes, not with what was announced
		if _, err := io.CopyN(&b, r, int64(length)+2); err != nil {
			return nil, err
		}
		text, ok := bytes.CutSuffix(b.Bytes(), []byte("\r\n"))
		if !ok {
			return nil, errCommand
		}
		args[i] = text
	}
	return args, nil
}

// readLength reads a line of a kind and a number from 0 to most.
func readLength(r *bufio.Reader, kind byte, most int) (int, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			err = errCommand
		}
		return 0, err
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(text) == 0 || text[0] != kind {
		return 0, errCommand
	}
	n, err := strconv.Atoi(string(text[1:]))
	if err != nil || n < 0 || n > most {
		return 0, errCommand
	}
	return n, nil
}

func appendCommand(b []byte, args [][]byte) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n", len(a))
		b = append(b, a...)
		b = append(b, "\r\n"...)
	}
	return b
}
