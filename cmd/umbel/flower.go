package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/umbelhq/umbel/internal/floweroptions"
	"github.com/umbelhq/umbel/web/flower"
)

// flowerCmd takes the command line of Flower. It has the flags of serve besides.
type flowerCmd struct{ serveCmd }

// flowerArgs returns the arguments as they are for the command flower: those of Celery and others may precede it.
func flowerArgs(args []string, global *pflag.FlagSet) (rest []string, ok bool) {
	at := floweroptions.Split(args, func(name string) bool {
		f := global.Lookup(strings.TrimLeft(name, "-"))
		return f != nil && f.NoOptDefVal == ""
	})
	if at < 0 {
		return nil, false
	}
	return append(append([]string{}, args[:at]...), args[at+1:]...), true
}

// parse reads args as Flower does: its options, and others of fs.
func (c *flowerCmd) parse(fs *pflag.FlagSet, args []string) error {
	var err error
	c.command = true
	c.flower, err = floweroptions.Read(floweroptions.Input{
		Environ: os.Environ(), Args: args, ReadFile: os.ReadFile,
		Other: func(name string) (takesValue, ok bool) {
			f := fs.Lookup(name)
			if f == nil {
				return false, false
			}
			return f.NoOptDefVal == "", true
		},
	})
	if err != nil {
		return err
	}
	if c.flower.Help {
		return pflag.ErrHelp
	}
	return c.apply(fs, c.flower.Rest)
}

// parse reads args and the variables of Flower.
func (c *serveCmd) parse(fs *pflag.FlagSet, args []string) error {
	var err error
	if c.flower, err = floweroptions.Read(floweroptions.Input{Environ: os.Environ()}); err != nil {
		return err
	}
	return c.apply(fs, args)
}

// apply sets flags: from args, from the command line of Flower, from variables of Umbel, and from what else Flower is told,
// in this order of precedence.
func (c *serveCmd) apply(fs *pflag.FlagSet, args []string) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	said, err := c.translate()
	if err != nil {
		return err
	}
	set := func(source floweroptions.Source) error {
		for _, s := range said {
			if f := fs.Lookup(s.flag); s.source < source || f.Changed {
				continue
			}
			if err := fs.Set(s.flag, s.value); err != nil {
				return fmt.Errorf("%s: %w", s.origin, err)
			}
		}
		return nil
	}
	if err := set(floweroptions.CommandLine); err != nil {
		return err
	}
	if err := parseFlags(fs, nil); err != nil {
		return err
	}
	return set(floweroptions.Environment)
}

// said is a flag that an option of Flower stands for.
type said struct {
	flag, value, origin string
	source              floweroptions.Source
}

// translate returns the flags that the options of Flower stand for.
func (c *serveCmd) translate() ([]said, error) {
	s := c.flower
	var list []said
	add := func(option, flag string, value func(x floweroptions.Setting) string) {
		if x, ok := s.Get(option); ok {
			list = append(list, said{flag, value(x), x.Origin, x.Source})
		}
	}
	same := func(x floweroptions.Setting) string { return fmt.Sprint(x.Value) }
	list = append(list, c.listenAddress()...)
	add("url_prefix", "prefix", same)
	add("certfile", "https-cert", same)
	add("keyfile", "https-key", same)
	add("ca_certs", "https-client-ca", same)
	add("read_only", "read-only", same)
	add("unauthenticated_api", "flower-api", same)
	add("enable_events", "enable-events", same)
	add("max_tasks", "max-tasks", same)
	add("purge_offline_workers", "keep-workers", func(x floweroptions.Setting) string {
		n, _ := x.Value.(int)
		return strconv.Itoa(max(n, 1)) + "s" // 0 keeps them forever
	})
	add("task_runtime_metric_buckets", "runtime-buckets", func(x floweroptions.Setting) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(x.Value), "[]"), " ", ",")
	})
	add("db", "data-dir", func(x floweroptions.Setting) string {
		file, _ := x.Value.(string)
		return filepath.Join(filepath.Dir(file), "umbel")
	})
	add("broker_api", "management-url", managementURL)
	add("logging", "log-level", func(x floweroptions.Setting) string { return logLevel(x.Value) })
	if x, ok := s.Get("debug"); ok && x.Value == true {
		list = append([]said{{"log-level", "debug", x.Origin, x.Source}}, list...)
	}
	for flag, value := range map[string]string{"broker-url": s.Broker, "result-backend": s.ResultBackend} {
		if value != "" {
			list = append(list, said{flag, value, "--" + flag, floweroptions.CommandLine})
		}
	}
	signIn, err := signInOf(s)
	return append(list, signIn...), err
}

// listenAddress returns --listen of address and port, or of the socket.
func (c *serveCmd) listenAddress() []said {
	s := c.flower
	if x, ok := s.Get("unix_socket"); ok && x.Value != "" {
		return []said{{"listen", fmt.Sprintf("unix:%s", x.Value), x.Origin, x.Source}}
	}
	address, hasAddress := s.Get("address")
	port, hasPort := s.Get("port")
	if !hasAddress && !hasPort && (!c.command || !signsIn(s)) {
		return nil
	}
	host, number := "127.0.0.1", "5555"
	if c.command && signsIn(s) {
		host = "" // all interfaces, as in Flower
	}
	if text, _ := address.Value.(string); text != "" {
		host = text
	}
	if hasPort {
		number = fmt.Sprint(port.Value)
	}
	x := address
	if port.Source >= address.Source {
		x = port
	}
	x.Source = max(x.Source, floweroptions.Environment)
	return []said{{"listen", net.JoinHostPort(host, number), x.Origin, x.Source}}
}

// logLevel returns the level that Tornado's option logging stands for.
func logLevel(v any) string {
	switch text := strings.ToLower(fmt.Sprint(v)); text {
	case "warning":
		return "warn"
	case "none", "critical":
		return "error"
	default:
		return text
	}
}

// Run serves until ctx ends.
func (c *flowerCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	if c.BrokerURL == "" && c.BrokerURLFile == "" {
		for flag, value := range map[string]string{"-A": c.flower.App, "--config": c.flower.Config} {
			if value != "" {
				return usageError{fmt.Errorf("%s %s needs Python to be read: run \"celery %[1]s %[2]s umbel\", or add --broker=URL", flag, value)}
			}
		}
	}
	if address, _ := c.flower.Get("address"); !c.Unauthenticated && !c.configured() && strings.HasPrefix(c.Listen, "127.0.0.1:") && address.Value != "127.0.0.1" {
		c.flower.Warnings = append(c.flower.Warnings, "Flower listens on all interfaces, Umbel on 127.0.0.1 only, as there is no authentication: "+
			"--address=0.0.0.0 --unauthenticated opens it")
	}
	return c.serveCmd.Run(ctx, s, log)
}

// maxInspectTimeout bounds how long a request waits for a worker.
const maxInspectTimeout = time.Minute

// flowerAPI sets what the options of Flower say of its API alone.
func (c *serveCmd) flowerAPI(s *flower.Settings) {
	if x, ok := c.flower.Get("purge_offline_workers"); ok {
		n, _ := x.Value.(int)
		s.PurgeOffline = new(time.Duration(min(max(n, 0), math.MaxInt32)) * time.Second)
	}
	if x, ok := c.flower.Get("inspect_timeout"); ok {
		ms, _ := x.Value.(float64)
		ms = min(max(ms, 0), float64(maxInspectTimeout/time.Millisecond))
		s.InspectTimeout = time.Duration(ms * float64(time.Millisecond))
	}
}

// checkFlower notes which options of Flower have no effect.
func (c *serveCmd) checkFlower() error {
	s := c.flower
	for flag, value := range map[string]string{"-A": s.App, "--config": s.Config} {
		if value != "" {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s %s is not read, which needs Python; celery umbel reads it", flag, value))
		}
	}
	api, ok := s.Get("broker_api")
	url, _, err := secret("--broker-url", c.BrokerURL, c.BrokerURLFile)
	if err == nil && ok && c.Management == managementURL(api) && url != "" && !strings.HasPrefix(url, "amqp") && !strings.HasPrefix(url, "pyamqp") {
		c.Management = ""
		s.Warnings = append(s.Warnings, api.Origin+" is ignored: the management API is RabbitMQ's, and the broker is another")
	}
	c.notes = s.Warnings
	return err
}

// managementURL returns broker_api without its final /api/.
func managementURL(x floweroptions.Setting) string {
	url, _ := x.Value.(string)
	return strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/api")
}
