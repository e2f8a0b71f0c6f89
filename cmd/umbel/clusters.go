package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// clusterFlags say what a cluster consists of: its broker, and what applications keep beside it.
type clusterFlags struct {
	brokerFlags
	resultFlags
	outboxFlags
	beatFlags
	lockFlags
}

// cluster turns the flags into options.
func (f *clusterFlags) cluster() (dashboard.Options, error) {
	o, err := f.brokerFlags.options()
	for _, set := range []func(*dashboard.Options) error{f.results, f.outboxes, f.beatTables, f.locks} {
		if err == nil {
			err = set(&o)
		}
	}
	return o, err
}

// clustersFlags name several clusters.
type clustersFlags struct {
	Clusters     []string `name:"cluster" env:"UMBEL_CLUSTER" placeholder:"NAME=URL" help:"Watch several clusters, each with a name and the URL of its broker, in place of --broker-url. Others can read a command line: prefer the variable, or --clusters-file. Repeatable."`
	ClustersFile string   `env:"UMBEL_CLUSTERS_FILE" placeholder:"FILE" help:"Read clusters from a JSON list of objects: name, and options of serve by their names, such as broker-url and result-backend."`
}

// remotesFlags name clusters that other Umbels watch.
type remotesFlags struct {
	Remotes      []string `name:"remote" env:"UMBEL_REMOTE" placeholder:"NAME=URL" help:"Show the cluster of another Umbel beside those of --cluster, read-only: its name here, and the URL of that Umbel or of one of its clusters. Repeatable. Its API token is in UMBEL_REMOTE_TOKEN_NAME, or in --remote-token-file."`
	RemoteTokens []string `name:"remote-token-file" env:"UMBEL_REMOTE_TOKEN_FILE" placeholder:"NAME=FILE" help:"Read the API token for another Umbel from a file. Repeatable."`
}

// remotes returns them. Its error is one sentence.
func (f *remotesFlags) remotes() (list []*web.Remote, err error) {
	files := map[string]string{}
	for _, text := range f.RemoteTokens {
		name, file, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("--remote-token-file: write NAME=FILE")
		}
		files[name] = file
	}
	for _, text := range f.Remotes {
		name, url, ok := strings.Cut(text, "=")
		switch {
		case !ok || !clusterName.MatchString(name) || auth.ReservedCluster(name):
			return nil, errors.New("--remote: write NAME=URL, such as eu=https://ops.example.com/umbel, with a name of letters, digits, - and _")
		case slices.ContainsFunc(list, func(r *web.Remote) bool { return strings.EqualFold(r.Name, name) }):
			return nil, fmt.Errorf("--remote: two are called %s", name)
		}
		if err := web.CheckRemoteURL(url); err != nil {
			return nil, fmt.Errorf("--remote %s: %w", name, err)
		}
		token := os.Getenv("UMBEL_REMOTE_TOKEN_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		token, _, err := secret("--remote-token", token, files[name])
		if err != nil {
			return nil, err
		}
		delete(files, name)
		list = append(list, &web.Remote{Name: name, URL: url, Token: token})
	}
	for name := range files {
		return nil, fmt.Errorf("--remote-token-file: there is no --remote %s", name)
	}
	return list, nil
}

// several reports whether there are clusters with names.
func (c *serveCmd) several() bool {
	return len(c.Clusters) > 0 || c.ClustersFile != "" || len(c.Remotes) > 0
}

// clusterName is what a cluster can be called: it is part of addresses, directories and lists of users.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// clusters returns the clusters. Its error is one sentence.
func (f *clustersFlags) clusters() (list []dashboard.Cluster, err error) {
	add := func(source, name string, values map[string]any) error {
		switch {
		case !clusterName.MatchString(name):
			return fmt.Errorf("%s: %q is no name of a cluster: use letters, digits, - and _, 40 at most", source, name)
		case auth.ReservedCluster(name):
			return fmt.Errorf("%s: a cluster cannot be called %s, which means something else in lists of users", source, name)
		case slices.ContainsFunc(list, func(c dashboard.Cluster) bool { return strings.EqualFold(c.Name, name) }):
			return fmt.Errorf("%s: two clusters are called %s, and upper and lower case do not tell them apart", source, name)
		}
		o, err := clusterOptions(values)
		if err != nil {
			return fmt.Errorf("%s: cluster %s: %w", source, name, err)
		}
		list = append(list, dashboard.Cluster{Name: name, Options: o})
		return nil
	}
	for _, text := range f.Clusters {
		name, url, ok := strings.Cut(text, "=")
		if !ok { // what it is may be a URL with a password
			return nil, errors.New("--cluster: write NAME=URL, such as shop=redis://redis.example.com/0")
		}
		if err := add("--cluster", name, map[string]any{"broker-url": url}); err != nil {
			return nil, err
		}
	}
	if f.ClustersFile == "" {
		return list, nil
	}
	text, err := os.ReadFile(f.ClustersFile)
	if err != nil {
		return nil, fmt.Errorf("--clusters-file: %w", err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(text, &objects); err != nil {
		return nil, fmt.Errorf("--clusters-file %s: %w", f.ClustersFile, err)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("--clusters-file %s names no cluster", f.ClustersFile)
	}
	for _, o := range objects {
		name, _ := o["name"].(string)
		delete(o, "name")
		if err := add("--clusters-file "+f.ClustersFile, name, o); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// clusterOptions returns the options of a cluster whose flags have values.
func clusterOptions(values map[string]any) (dashboard.Options, error) {
	var c clusterFlags
	fs := newFlagSet("cluster", &c)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if fs.Lookup(name) == nil {
			return dashboard.Options{}, fmt.Errorf("%s is no option of a cluster", name)
		}
		list, ok := values[name].([]any)
		if !ok {
			list = []any{values[name]}
		}
		for _, v := range list {
			if err := fs.Set(name, fmt.Sprint(v)); err != nil {
				return dashboard.Options{}, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return c.cluster()
}

// alone refuses what is of one cluster, or of what has no clusters, beside several.
func (c *serveCmd) alone() error {
	var usual clusterFlags
	newFlagSet("", &usual)
	switch {
	case c.command:
		return errors.New("umbel flower shows one cluster: use umbel serve --cluster")
	case c.BrokerURL != "" || c.BrokerURLFile != "":
		return errors.New("--cluster takes the place of --broker-url: leave out that one, or name it with --cluster, and leave out UMBEL_BROKER_URL and CELERY_BROKER_URL")
	case !reflect.DeepEqual(c.clusterFlags, usual):
		return errors.New("there are several clusters: write what is of one broker, such as --result-backend and --queue, to --clusters-file")
	case c.Trace != "":
		return errors.New("--trace shows a trace in place of a cluster: leave out --cluster")
	}
	return nil
}

// serveClusters watches several clusters until ctx ends.
func (c *serveCmd) serveClusters(ctx context.Context, log *slog.Logger) error {
	if err := c.alone(); err != nil {
		return usageError{err}
	}
	list, err := c.clusters()
	if err != nil {
		return usageError{err}
	}
	remotes, err := c.remotes()
	if err != nil {
		return usageError{err}
	}
	for _, r := range remotes {
		if slices.ContainsFunc(list, func(l dashboard.Cluster) bool { return strings.EqualFold(l.Name, r.Name) }) {
			return usageError{fmt.Errorf("--remote: a cluster is called %s already", r.Name)}
		}
	}
	kept, err := c.place(true)
	if err != nil {
		return err
	}
	all := dashboard.Options{Version: versionString(), DataDir: kept.dir, History: kept.url, Remotes: remotes}
	if all.History != "" {
		all.Node = c.node()
	}
	brokers := map[string]string{}
	for i := range list {
		o := &list[i].Options
		if other, ok := brokers[o.BrokerURL]; ok {
			log.Warn("two clusters have the same broker", "cluster", list[i].Name, "other", other)
		}
		brokers[o.BrokerURL] = list[i].Name
		o.DataDir, o.History, o.LeaveEventsOff, o.Alone = kept.dir, kept.url, !c.EnableEvents, !c.Peers
		if err := c.prepare(o, log); err != nil {
			return err
		}
	}
	if err := c.prepare(&all, log); err != nil {
		return err
	}
	open := func() (dashboard.Shown, error) { return dashboard.NewClusters(all, list) } //nolint:contextcheck // a migration is not cut short
	u, err := dashboard.Open(all, open)
	if err != nil {
		return opened(err)
	}
	return c.show(ctx, u, log, nil)
}
