package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
)

// tokenCreateCmd makes an API token while no server runs.
type tokenCreateCmd struct {
	historyFlags
	Name     string   `placeholder:"NAME" help:"What the token is for."`
	Role     string   `default:"viewer" enum:"viewer,operator,admin" placeholder:"ROLE" help:"What it may be used for: viewer, operator or admin."`
	Payload  bool     `help:"Show arguments, results and exceptions to whoever has it."`
	Clusters []string `name:"cluster" placeholder:"NAME" help:"Of several clusters, the one that it is for; by default it is for all. Repeatable."`
	Expires  age      `default:"90d" placeholder:"AGE" help:"How long it is valid."`
}

// Run prints the token.
func (c *tokenCreateCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	role, err := auth.ParseRole(c.Role)
	if err != nil {
		return usageError{err}
	}
	if err := checkNames(c.Clusters...); err != nil {
		return err
	}
	a := auth.Audience{Role: role, Payload: c.Payload, Clusters: strings.Join(c.Clusters, ",")}
	token, secret, err := auth.NewToken(c.Name, a, time.Duration(c.Expires), time.Now())
	if err != nil {
		return usageError{fmt.Errorf("--name, --expires: %w", err)}
	}
	return c.write(ctx, log, true, func(db history.Store) error {
		made, err := db.CreateToken(ctx, token)
		if err != nil {
			return err
		}
		if err := auditToken(ctx, db, "create token", made); err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, secret)
		return err
	})
}

// tokenListCmd lists API tokens.
type tokenListCmd struct {
	historyFlags
	Cluster string `placeholder:"NAME" help:"Of several clusters, the one that they must be good for."`
}

// Run prints them without their secrets. The server may be running.
func (c *tokenListCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	p, err := c.place(false)
	if err == nil && c.Cluster != "" {
		err = checkNames(c.Cluster)
	}
	if err != nil {
		return err
	}
	return p.read(ctx, history.RetentionRules{}, log, func(db history.Store) error {
		list, err := db.Tokens(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tOWNER\tROLE\tPAYLOAD\tCREATED\tEXPIRES\tUSED")
		for _, t := range list {
			if c.Cluster != "" && !goodFor(t, c.Cluster) {
				continue
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%t\t%s\t%s\t%s\n", t.ID, printable(t.Name), printable(auth.TokenOwner(t)), t.Role, t.Payload,
				moment(t.CreatedAt), moment(t.ExpiresAt), moment(t.UsedAt))
		}
		return w.Flush()
	})
}

// tokenRevokeCmd removes an API token while no server runs.
type tokenRevokeCmd struct {
	historyFlags
	Cluster string `placeholder:"NAME" help:"Of several clusters, the one that the token must be for alone, so that no other token is revoked."`
}

// Run removes the token with the ID.
func (c *tokenRevokeCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	if len(s.args) != 1 {
		return usageError{errors.New("name the ID of one token, which umbel token list prints")}
	}
	id, err := strconv.ParseInt(s.args[0], 10, 64)
	if err != nil {
		return usageError{fmt.Errorf("%s is not the ID of a token", s.args[0])}
	}
	if c.Cluster != "" {
		if err := checkNames(c.Cluster); err != nil {
			return err
		}
	}
	return c.write(ctx, log, false, func(db history.Store) error {
		if err := c.check(ctx, db, id); err != nil {
			return err
		}
		err := db.DeleteToken(ctx, id)
		if errors.Is(err, history.ErrNotFound) {
			return fmt.Errorf("there is no token %d", id)
		}
		if err != nil {
			return err
		}
		return auditToken(ctx, db, "revoke token", history.Token{ID: id, Name: strconv.FormatInt(id, 10)})
	})
}

// check refuses to revoke a token that is for another cluster too.
func (c *tokenRevokeCmd) check(ctx context.Context, db history.Store, id int64) error {
	if c.Cluster == "" {
		return nil
	}
	list, err := db.Tokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range list {
		if of := auth.TokenClusters(t); t.ID == id && (len(of) != 1 || !strings.EqualFold(of[0], c.Cluster)) {
			return fmt.Errorf("token %d is not for the cluster %s alone", id, c.Cluster)
		}
	}
	return nil
}

// goodFor reports whether a token may be used in a cluster.
func goodFor(t history.Token, cluster string) bool {
	of := auth.TokenClusters(t)
	return len(of) == 0 || slices.ContainsFunc(of, func(name string) bool { return strings.EqualFold(name, cluster) })
}

// checkNames refuses what is no name of a cluster.
func checkNames(clusters ...string) error {
	for _, name := range clusters {
		if !clusterName.MatchString(name) {
			return usageError{fmt.Errorf("--cluster: %q is no name of a cluster", name)}
		}
	}
	return nil
}

// write calls use with the history, opened for writing. Only with create, one is made where there is none.
func (f *historyFlags) write(ctx context.Context, log *slog.Logger, create bool, use func(db history.Store) error) error {
	p, err := f.place(false)
	if err != nil {
		return err
	}
	if !create {
		if err := p.read(ctx, history.RetentionRules{}, log, func(history.Store) error { return nil }); err != nil {
			return err
		}
	}
	db, err := p.open(ctx, history.RetentionRules{}, false, log)
	if errors.Is(err, history.ErrLocked) {
		return fmt.Errorf("%w: while the server runs, tokens are made and revoked on its page /tokens", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

func auditToken(ctx context.Context, db history.Store, action string, t history.Token) error {
	detail, err := json.Marshal(map[string]any{"id": t.ID, "role": t.Role, "payload": t.Payload})
	if err != nil {
		return err
	}
	return db.AppendAudit(ctx, history.AuditRecord{
		At: time.Now(), Kind: history.AuditToken, Outcome: history.AuditAccepted, Actor: "command line", Method: "host",
		Action: action, Target: t.Name, Detail: string(detail),
	})
}
