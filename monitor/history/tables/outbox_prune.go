package tables

// RemoveCommands removes the n commands that were final first, before a moment in µs since 1970 UTC, and returns how many.
func RemoveCommands(t Tx, before int64, n int) (int, error) {
	old, err := commandsOf(t.Context(), t, `WHERE done IS NOT NULL AND done < ? ORDER BY done LIMIT ?`+t.Dialect().forUpdate, before, n)
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
			if err := t.Exec(`DELETE FROM outbox_nodes WHERE node = ? AND command = ?`, node, c.ID); err != nil {
				return 0, err
			}
		}
		if err := t.Exec(`DELETE FROM outbox WHERE command = ?`, c.ID); err != nil { // and its dead letter
			return 0, err
		}
	}
	return len(old), nil
}
