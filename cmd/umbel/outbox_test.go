package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// requested is the command "requested DIR FILE": the history in DIR has the requests in FILE, one a line.
func requested(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: requested DIR FILE")
	}
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: ts.MkAbs(args[0])})
	ts.Check(err)
	ts.Check(errors.Join(enqueue(db, ts.ReadFile(args[1])), db.Close()))
}

// enqueue writes requests of one command each, with their outcome where they have one.
func enqueue(db *sqlite.DB, lines string) error {
	ctx := context.Background()
	for d := json.NewDecoder(strings.NewReader(lines)); d.More(); {
		var o struct{ Actor, Action, Target, State, Error string }
		if err := d.Decode(&o); err != nil {
			return err
		}
		at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
		written, _, err := db.Enqueue(ctx, history.CommandRequest{
			Commands: []history.Command{{Kind: "task", Group: o.Target, Target: o.Target}},
			Audit:    history.AuditRecord{At: at, Actor: o.Actor, RemoteAddr: "10.0.0.7", Action: o.Action, Target: o.Target},
		})
		if err != nil {
			return err
		}
		if o.State == "" {
			continue
		}
		if _, err := db.Claim(ctx, "relay", at, 1, 1); err != nil {
			return err
		}
		err = db.RecordOutcomes(ctx, "relay", at, []history.Outcome{{ID: written[0].ID, State: history.CommandState(o.State), Error: o.Error}})
		if err != nil {
			return err
		}
	}
	return nil
}
