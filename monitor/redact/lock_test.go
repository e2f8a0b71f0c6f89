package redact_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/redact"
)

func TestKeysOfLocks(t *testing.T) {
	t.Parallel()
	x, err := redact.New(redact.Options{Rules: []string{"task pay.* kwargs", `text \d{3}-\d{2}`}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ task, head, arguments, want string }{
		{"a", "qo_a_", "amount-3_user-x", "qo_a_amount-3_user-x"},
		{"a", "qo_a_", "api_key-x", "qo_a_api_key-********"},
		{"a", "qo_a_", "amount-3_api_key-x_y-z", "qo_a_amount-3_api_key-********"},
		{"a", "qo_a_", "a-b-c_password-x", "qo_a_a-b-c_password-********"},
		{"pay.card", "qo_pay.card_", "amount-3", "qo_pay.card_********"},
		{"a", "qo_a_", "number-123-45_y-z", "qo_a_number-********_y-z"},
		{"a", "lock:celery:exec:a:0f", "", "lock:celery:exec:a:0f"},
		{"", "token=hunterzwei", "", "token=********"},
	} {
		if got := x.LockKey(test.task, test.head+test.arguments, test.arguments); got != test.want {
			t.Errorf("%s%s is shown as %s, want %s", test.head, test.arguments, got, test.want)
		}
	}
}
