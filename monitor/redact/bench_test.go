package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
)

// BenchmarkEvent redacts events of the usual size in which nothing matches, and one in which a value does.
func BenchmarkEvent(b *testing.B) {
	r := newRedactor(b)
	plain := state.Event{
		Kind: state.TaskReceived, Name: "shop.orders.confirm", Args: "(48213, 'customer@example.com')",
		Kwargs: "{'order': 48213, 'currency': 'EUR', 'lines': [{'sku': 'A-12', 'n': 2}]}",
	}
	failed := state.Event{
		Kind: state.TaskFailed, Exception: "ValueError('no such order: 48213')",
		Traceback: strings.Repeat("  File \"/srv/shop/orders.py\", line 48, in confirm\n    order = load(number)\n", 12),
	}
	secret := plain
	secret.Kwargs = "{'order': 48213, 'password': 'hunter2', 'lines': [{'sku': 'A-12', 'n': 2}]}"
	for name, e := range map[string]state.Event{"plain": plain, "failed": failed, "secret": secret} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := e
				r.Event(&e, "")
			}
		})
	}
}

// BenchmarkSettings masks settings of some size.
func BenchmarkSettings(b *testing.B) {
	conf := json.RawMessage(`{"broker_url":"amqp://u:p@h//","x":[` + strings.Repeat(`{"some_setting":"a value of it","other":1},`, 200) + `null]}`)
	redactor := newRedactor(b)
	b.SetBytes(int64(len(conf)))
	for b.Loop() {
		redactor.Settings(conf)
	}
}
