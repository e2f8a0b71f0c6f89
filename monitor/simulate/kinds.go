package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kind is a task of the shop's code.
type kind struct {
	name    string
	queue   string
	median  time.Duration // of its run time, which is log-normal
	sigma   float64
	late    bool            // acks_late
	retries int64           // max_retries
	steps   int             // task-progress events that it sends
	unknown bool            // no worker has it registered
	lockTTL time.Duration   // of the lock that its calls take, 0 if they take none
	fenced  bool            // the lock names its task
	done    map[string]bool // completed calls, by the key of their lock
	call    func(d rng) (args, kwargs string)
	result  func(d rng) string
	faults  []fault
}

// fault is one way in which a task fails. {n} in its text becomes a number, {s} the countdown.
type fault struct {
	chance    float64
	how       how
	exception string
	traceback string
	again     string // traceback of a retry
}

// exceeded is the end of a task by its hard time limit.
func exceeded(seconds float64) *fault {
	text := "TimeLimitExceeded(" + strconv.FormatFloat(seconds, 'f', -1, 64) + ")"
	return &fault{how: dies, exception: text, traceback: tracebackHead +
		frame{site + "billiard/pool.py", 684, "on_hard_timeout", "raise TimeLimitExceeded(job._timeout)", ""}.String() +
		"billiard.exceptions." + text + "\n"}
}

// killed is the end of a task whose child is killed.
func killed() *fault {
	return &fault{how: dies, exception: "WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL) Job: {n}.')", traceback: tracebackHead +
		frame{site + "billiard/pool.py", 1265, "mark_as_worker_lost", "raise WorkerLostError(", ""}.String() +
		"billiard.exceptions.WorkerLostError: Worker exited prematurely: signal 9 (SIGKILL) Job: {n}.\n"}
}

func withChance(chance float64, f *fault) fault {
	f.chance = chance
	return *f
}

// how is what a task does about a fault.
type how uint8

const (
	raises  how = iota
	retries     // up to the kind's limit, then it raises
	rejects     // raises Reject
	dies        // the pool child is killed
)

// fault returns what goes wrong with x, nil if nothing does. An orphan always succeeds: a retry by
// it could run beside the retry of its double on one process.
func (k *kind) fault(d rng, x *execution) *fault {
	if x.orphan {
		return nil
	}
	roll := d.Float64()
	for i := range k.faults {
		if roll -= k.faults[i].chance; roll < 0 {
			return &k.faults[i]
		}
	}
	return nil
}

// kinds returns the shop's tasks by name. Those of Celery's default queue get the one given.
func kinds(queue string, locks bool) map[string]*kind {
	all := make(map[string]*kind)
	lists := [][]kind{orderKinds(), mailKinds(), catalogueKinds(), backgroundKinds()}
	if locks {
		lists = append(lists, idempotentKinds())
	}
	for _, k := range lists {
		for i := range k {
			if k[i].queue == "" || k[i].queue == defaultQueue {
				k[i].queue = queue
			}
			k[i].done = make(map[string]bool)
			all[k[i].name] = &k[i]
		}
	}
	return all
}

const app = "/srv/shop/"

func orderKinds() []kind {
	post := frame{app + "billing/tasks.py", 48, "charge_card", "charge = gateway.post('/v1/charges', json=payload)", "gateway.post('/v1/charges', json=payload)"}
	send := frame{site + "requests/adapters.py", 688, "send", "raise ConnectionError(e, request=request)", ""}
	reset := "ConnectionError(ProtocolError('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer')))"
	resetLast := "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))"
	declined := frame{app + "billing/gateway.py", 131, "post", "raise CardDeclined(body['code'], order=order)", ""}
	reserve := frame{app + "inventory/tasks.py", 27, "reserve", "stock = Stock.objects.select_for_update().get(sku=sku)", "Stock.objects.select_for_update().get(sku=sku)"}
	execute := frame{site + "django/db/backends/utils.py", 105, "_execute", "return self.cursor.execute(sql, params)", "self.cursor.execute(sql, params)"}
	deadlock := "deadlock detected\nDETAIL:  Process {n} waits for ShareLock on transaction 8812041; blocked by process 24107.\nHINT:  See server log for query details.\n"
	return []kind{
		{
			name: "billing.charge_card", queue: "billing", median: 320 * time.Millisecond, sigma: 0.5, retries: 3,
			call: func(d rng) (string, string) {
				return "('ORD-" + number(d.upTo(10_000, 99_999)) + "',)",
					fmt.Sprintf("{'amount': Decimal('%d.%02d'), 'currency': '%s', 'customer_id': %d}", d.upTo(4, 390), d.IntN(100), pick(d, []string{"EUR", "EUR", "GBP", "CHF", "PLN"}), d.upTo(1_000, 60_000))
			},
			result: func(d rng) string {
				return fmt.Sprintf("{'charge': 'ch_%x', 'captured': True}", d.Uint64())
			},
			faults: []fault{
				{0.05, retries, reset, raised(resetLast, post, send), retried(resetLast, reset, post, send)},
				{0.03, raises, "CardDeclined('insufficient_funds', order='ORD-{n}')", raised("billing.gateway.CardDeclined: ('insufficient_funds', 'ORD-{n}')", post, declined), ""},
			},
		},
		{
			name: "billing.refund", queue: "billing", median: 450 * time.Millisecond, sigma: 0.4, retries: 2,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("('ch_%x',)", d.Uint64()), "{'reason': 'customer', 'note': 'Größe passt nicht, hätte gern \"M\"'}"
			},
			result: func(rng) string { return "None" },
			faults: []fault{{0.08, retries, reset, raised(resetLast, post, send), retried(resetLast, reset, post, send)}},
		},
		{
			name: "inventory.reserve", queue: "celery", median: 45 * time.Millisecond, sigma: 0.6, retries: 5,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("('SKU-%05d', %d)", d.IntN(40_000), d.upTo(1, 4)), fmt.Sprintf("{'warehouse': '%s'}", pick(d, []string{"BER1", "WAW2", "LYS1"}))
			},
			result: func(d rng) string { return number(d.upTo(1, 4)) },
			faults: []fault{
				{0.03, retries, "OperationalError('" + strings.ReplaceAll(deadlock, "\n", `\n`) + "')", raised("django.db.utils.OperationalError: "+deadlock, reserve, execute), retried("django.db.utils.OperationalError: "+deadlock, "OperationalError('deadlock detected')", reserve, execute)},
				{0.01, raises, "OutOfStock('SKU-{n}')", raised("inventory.errors.OutOfStock: SKU-{n}", frame{app + "inventory/tasks.py", 31, "reserve", "raise OutOfStock(sku)", ""}), ""},
			},
		},
		{
			name: "fraud.score", queue: "celery", median: 30 * time.Millisecond, sigma: 0.7,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("(%d,)", d.upTo(100_000, 999_999)), fmt.Sprintf("{'ip': '203.0.113.%d', 'model': 'gbt-7'}", d.IntN(256))
			},
			result: func(d rng) string { return string(appendFloat(nil, float64(d.IntN(1_000))/1_000)) },
			faults: []fault{{0.004, raises, "KeyError('card_country')", raised("KeyError: 'card_country'",
				frame{app + "fraud/tasks.py", 19, "score", "row = features(order)", "features(order)"},
				frame{app + "fraud/features.py", 88, "features", "country = order.meta['card_country']", "order.meta['card_country']"}), ""}},
		},
		{
			name: "orders.import", queue: "celery", median: 1200 * time.Millisecond, sigma: 0.5, late: true, steps: 2,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("('s3://shop-inbox/2026/%02d/orders-%06d.csv',)", d.upTo(1, 12), d.IntN(1_000_000)), "{'dialect': 'excel-tab'}"
			},
			result: func(d rng) string {
				return fmt.Sprintf("{'rows': %d, 'skipped': %d}", d.upTo(20, 900), d.IntN(5))
			},
			faults: []fault{{0.05, raises, "UnicodeDecodeError('utf-8', b'M\\xfcller;', 1, 2, 'invalid start byte')", raised("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xfc in position {n}: invalid start byte",
				frame{app + "orders/tasks.py", 64, "import_", "for row in csv.DictReader(lines):", "csv.DictReader(lines)"},
				frame{"<frozen codecs>", 322, "decode", "", ""}), ""}},
		},
	}
}

func mailKinds() []kind {
	smtp := frame{app + "mail/tasks.py", 40, "send_receipt", "connection.send_messages([message])", ""}
	data := frame{"/usr/lib/python3.12/smtplib.py", 887, "sendmail", "raise SMTPDataError(code, resp)", ""}
	busy := "SMTPDataError(451, b'4.7.1 Greylisting in action, please come back later')"
	busyLast := "smtplib.SMTPDataError: (451, b'4.7.1 Greylisting in action, please come back later')"
	deliver := frame{app + "webhooks/tasks.py", 33, "deliver", "response.raise_for_status()", ""}
	status := frame{site + "requests/models.py", 1026, "raise_for_status", "raise HTTPError(http_error_msg, response=self)", ""}
	unavailable := "HTTPError('503 Server Error: Service Unavailable for url: https://hooks.example.net/v2/shop')"
	unavailableLast := "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hooks.example.net/v2/shop"
	people := []string{"Zoë Müller", "Łukasz Nowak", "Søren Åström", "Ada O\\'Brien", "田中 さくら", "Ivo ☕ Koffer", "Jean-Luc Léger"}
	return []kind{
		{
			name: "mail.send_receipt", queue: "mail", median: 120 * time.Millisecond, sigma: 0.8, retries: 5,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("(%d,)", d.upTo(100_000, 999_999)), "{'to': '" + pick(d, people) + "', 'template': 'receipt', 'locale': '" + pick(d, []string{"de", "pl", "en", "ja"}) + "'}"
			},
			result: func(d rng) string { return fmt.Sprintf("'<%x@mx1.example.com>'", d.Uint64()) },
			faults: []fault{
				{0.05, retries, busy, raised(busyLast, smtp, data), retried(busyLast, busy, smtp, data)},
				{0.01, raises, "SMTPRecipientsRefused({'{n}@example.org': (550, b'5.1.1 User unknown')})", raised("smtplib.SMTPRecipientsRefused: {'{n}@example.org': (550, b'5.1.1 User unknown')}", smtp, data), ""},
			},
		},
		{
			name: "mail.remind_cart", queue: "mail", median: 150 * time.Millisecond, sigma: 0.5,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("(UUID('%s'),)", d.uuid()), reprText("body", strings.Repeat("Hallo "+pick(d, people[:3])+", in Deinem Warenkorb liegt noch etwas für Dich. ", d.upTo(1, 30)))
			},
			result: func(rng) string { return "True" },
		},
		{
			name: "webhooks.deliver", queue: "celery", median: 220 * time.Millisecond, sigma: 0.9, retries: 4,
			call: func(d rng) (string, string) {
				return "('https://hooks.example.net/v2/shop', 'order." + pick(d, []string{"paid", "shipped", "returned"}) + "')", fmt.Sprintf("{'payload': {'order': %d, 'lines': [...]}, 'signature': None}", d.upTo(10_000, 99_999))
			},
			result: func(rng) string { return "204" },
			faults: []fault{
				{0.05, retries, unavailable, raised(unavailableLast, deliver, status), retried(unavailableLast, unavailable, deliver, status)},
				{0.02, rejects, "reject requeue=False: endpoint {n} is disabled", raised("celery.exceptions.Reject: ('endpoint {n} is disabled', False)", frame{app + "webhooks/tasks.py", 29, "deliver", "raise Reject(reason, requeue=False)", ""}), ""},
			},
		},
	}
}
