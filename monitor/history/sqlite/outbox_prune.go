package sqlite

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history"
)

// removeCommands removes commands that have been final for longer than they are kept.
func (p *pruner) removeCommands(ctx context.Context) error {
	keep := p.db.rules.Commands
	if keep == 0 {
		return nil
	}
	return p.repeat(ctx, maxPruned/4, maxPruned, func(t *tx, n int) (int, history.Pruned, error) {
		did, err := t.removeCommands(p.now.Add(-keep).UnixMicro(), n)
		return did, history.Pruned{}, err
	})
}

// removeCommands removes the n commands that were final first, before a moment.
func (t *tx) removeCommands(before int64, n int) (int, error) {
	old, err := commandsOf(t.ctx, t, `WHERE done IS NOT NULL AND done < ? ORDER BY done LIMIT ?`, before, n)
	if err != nil {
		return 0, err
	}
	for i := range old {
		c := &old[i]
		nodes := append([]string{c.Target}, c.Expected...)
		for _, a := range c.Replies {
			nodes = append(nodes, a.Node)
		}
		for _, node := range nodes {
			if err := t.exec(`DELETE FROM outbox_nodes WHERE node = ? AND command = ?`, node, c.ID); err != nil {
				return 0, err
			}
		}
		if err := t.exec(`DELETE FROM outbox WHERE command = ?`, c.ID); err != nil { // and its dead letter
			return 0, err
		}
	}
	return len(old), nil
}
