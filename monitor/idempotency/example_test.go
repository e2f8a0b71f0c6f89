package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/monitor/idempotency/goredis"
)

func ExampleFingerprint() {
	kwargs, err := idempotency.ValueOf(map[string]any{"order_id": 17, "amount": 9.5, "note": "ü"})
	if err != nil {
		log.Fatal(err)
	}
	fingerprint, err := idempotency.Fingerprint("payments.charge", kwargs)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kwargs)
	fmt.Println(fingerprint)
	// Output:
	// {"amount":9.5,"note":"\u00fc","order_id":17}
	// celery:exec:payments.charge:728ff3cf71ad4b921c879d45fb15d2fe5a30fe7d055310db131f6076092fb286
}

func ExampleFingerprinter_Reduce() {
	f, err := idempotency.New(idempotency.Options{Without: []string{"request_id", "lines[*].at"}, Precision: new(2)})
	if err != nil {
		log.Fatal(err)
	}
	kwargs, err := idempotency.Parse([]byte(`{"request_id": "a7", "lines": [{"sku": "x", "at": 1700000000, "price": 0.30000000000000004}]}`))
	if err != nil {
		log.Fatal(err)
	}
	_, kwargs, err = f.Reduce(idempotency.Value{}, kwargs)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kwargs)
	// Output: {"lines":[{"price":0.3,"sku":"x"}]}
}

// A program that runs a call unless it ran before, or runs elsewhere.
func ExampleLocks_Run() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	locks, err := idempotency.NewLocks(goredis.New(client), idempotency.LockOptions{})
	if err != nil {
		log.Fatal(err)
	}
	kwargs, err := idempotency.ValueOf(map[string]any{"order_id": 17})
	if err != nil {
		log.Fatal(err)
	}
	fingerprint, err := idempotency.Fingerprint("payments.charge", kwargs)
	if err != nil {
		log.Fatal(err)
	}
	err = locks.Run(context.Background(), fingerprint, "", func(ctx context.Context) error {
		return nil // charge the card, and stop when ctx is done
	})
	if skipped, ok := errors.AsType[*idempotency.SkippedError](err); ok {
		log.Print("not charged: ", skipped.Reason)
	} else if err != nil {
		log.Fatal(err)
	}
}
