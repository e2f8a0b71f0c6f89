package receivers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
)

// maxComplaint is how much of what a command says is kept of an error.
const maxComplaint = 300

// run runs the command with the notification on its standard input. It is no shell, and nothing of the notification is an
// argument.
func (r *Receiver) run(ctx context.Context, n Notification) error {
	input, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	cmd := exec.CommandContext(ctx, r.Command[0], r.Command[1:]...) //nolint:gosec // of the file that the operator wrote
	cmd.Stdin = bytes.NewReader(input)
	said := &bounded{}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return fmt.Errorf("%s: %w: %s", r.Command[0], err, truncate.Bytes(oneLine(strings.ToValidUTF8(said.String(), "\uFFFD")), maxComplaint))
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if room := 4*maxComplaint - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
