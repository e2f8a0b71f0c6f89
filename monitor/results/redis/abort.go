package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/results"
)

// abortScript stores a record unless the one that there is says success, and keeps its expiry; one that there was not expires
// after a day, as by Celery's default. It returns 0, or 1 if there is a record that is not in JSON. Celery's clients
// wait for what is published.
const abortScript = `
local old = redis.call('GET', KEYS[1])
if old then
	local ok, record = pcall(cjson.decode, old)
	if not ok or type(record) ~= 'table' then return 1 end
	if record.status == 'SUCCESS' then return 0 end
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then left = 86400000 end
if left > 0 then
	redis.call('SET', KEYS[1], ARGV[1], 'PX', left)
else
	redis.call('SET', KEYS[1], ARGV[1])
end
redis.call('PUBLISH', KEYS[1], ARGV[1])
return 0`

// Abort implements results.Aborter for results in JSON.
func (b *Backend) Abort(ctx context.Context, taskID string, _ time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var foreign int64
	err := b.reader.Do(ctx, func(ctx context.Context, c *goredis.Client) (err error) {
		foreign, err = c.Eval(ctx, abortScript, []string{b.prefix + taskID}, results.AbortedRecord(taskID)).Int64()
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("write result: %w", err)
	case foreign != 0:
		return errors.New("write result: the result of the task is not stored as JSON")
	}
	return nil
}
