package simulate

import (
	"fmt"
	"strconv"
	"time"
)

func catalogueKinds() []kind {
	open := frame{app + "images/tasks.py", 22, "resize", "image = Image.open(source)", "Image.open(source)"}
	return []kind{
		{
			name: "images.resize", queue: "images", median: 700 * time.Millisecond, sigma: 0.6, late: true,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("('products/%06d/%s.jpg', (%d, %d))", d.IntN(1_000_000), pick(d, []string{"front", "back", "détail", "größe-xl"}), 320<<d.IntN(3), 240<<d.IntN(3)), "{'quality': 82}"
			},
			result: func(d rng) string { return number(d.upTo(9_000, 400_000)) },
			faults: []fault{
				{0.02, raises, "UnidentifiedImageError('cannot identify image file <_io.BytesIO object at 0x7f31c{n}>')", raised("PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f31c{n}>", open,
					frame{site + "PIL/Image.py", 3498, "open", "raise UnidentifiedImageError(msg)", ""}), ""},
				withChance(0.006, killed()),
			},
		},
		{
			name: "catalog.publish", queue: "celery", median: 80 * time.Millisecond, sigma: 0.4,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("([%d, %d, %d],)", d.upTo(9_000, 400_000), d.upTo(9_000, 400_000), d.upTo(9_000, 400_000)), fmt.Sprintf("{'product': %d}", d.IntN(1_000_000))
			},
			result: func(rng) string { return "None" },
		},
		{
			name: "search.index_product", queue: "celery", median: 60 * time.Millisecond, sigma: 0.6,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("(%d,)", d.IntN(1_000_000)), ""
			},
			result: func(rng) string { return "'created'" },
		},
		{
			name: "search.reindex", queue: "celery", median: 2500 * time.Millisecond, sigma: 0.5, late: true, retries: 2, steps: 3,
			call: func(d rng) (string, string) {
				first := d.upTo(100_000, 800_000)
				return reprList(d.upTo(40, 400), func(i int) string { return number(first + i) }), "{'alias': 'products-v7'}"
			},
			result: func(d rng) string {
				return fmt.Sprintf("{'indexed': %d, 'took': %d}", d.upTo(40, 400), d.upTo(400, 4_000))
			},
			faults: []fault{{
				0.06, retries, "ConnectionTimeout('Connection timed out')",
				raised("elastic_transport.ConnectionTimeout: Connection timed out", bulk(), pool10()),
				retried("elastic_transport.ConnectionTimeout: Connection timed out", "ConnectionTimeout('Connection timed out')", bulk(), pool10()),
			}},
		},
	}
}

func bulk() frame {
	return frame{app + "search/tasks.py", 57, "reindex", "done, errors = bulk(client, actions, stats_only=True)", "bulk(client, actions, stats_only=True)"}
}

func pool10() frame {
	return frame{site + "elastic_transport/_transport.py", 342, "perform_request", "resp = node.perform_request(method, target, body=body)", "node.perform_request(method, target, body=body)"}
}

func backgroundKinds() []kind {
	render := frame{app + "reports/tasks.py", 75, "nightly", "frame = load(day).groupby('country').agg(totals)", "load(day).groupby('country').agg(totals)"}
	return []kind{
		{
			name: "reports.nightly", queue: "reports", median: 5 * time.Second, sigma: 0.4, steps: 3,
			call: func(d rng) (string, string) {
				return fmt.Sprintf("(datetime.date(2026, %d, %d),)", d.upTo(1, 12), d.upTo(1, 28)), "{'currency': 'EUR', 'recipients': ['cfo@example.com', 'büro@example.com']}"
			},
			result: func(d rng) string {
				return fmt.Sprintf("{'pages': %d, 'revenue': Decimal('%d.%02d')}", d.upTo(2, 40), d.upTo(9_000, 250_000), d.IntN(100))
			},
			faults: []fault{
				{0.08, raises, "SoftTimeLimitExceeded()", raised("billiard.exceptions.SoftTimeLimitExceeded: SoftTimeLimitExceeded()", render,
					frame{site + "billiard/pool.py", 228, "soft_timeout_sighandler", "raise SoftTimeLimitExceeded()", ""}), ""},
			},
		},
		{
			name: "exports.orders_csv", queue: "reports", median: 6 * time.Second, sigma: 0.5, late: true, steps: 4,
			call: func(d rng) (string, string) {
				return "()", fmt.Sprintf("{'since': datetime.datetime(2026, %d, 1, 0, 0), 'columns': ['id', 'total', 'straße'], 'user_id': %d}", d.upTo(1, 12), d.upTo(1, 90))
			},
			result: func(d rng) string { return fmt.Sprintf("'s3://shop-exports/%s.csv'", d.uuid()) },
			faults: []fault{{0.05, raises, "PermissionDenied('s3:PutObject')", raised("exports.storage.PermissionDenied: s3:PutObject",
				frame{app + "exports/tasks.py", 112, "orders_csv", "storage.upload(path, key)", ""},
				frame{app + "exports/storage.py", 41, "upload", "raise PermissionDenied('s3:PutObject') from None", ""}), ""}},
		},
		{
			name: "carts.expire", queue: "celery", median: 300 * time.Millisecond, sigma: 0.4,
			call:   func(rng) (string, string) { return "()", "" },
			result: func(d rng) string { return strconv.Itoa(d.upTo(0, 12)) },
			faults: []fault{{0.05, raises, "LockNotAvailable('could not obtain lock on relation \"carts\"')", raised("psycopg2.errors.LockNotAvailable: could not obtain lock on relation \"carts\"",
				frame{app + "carts/tasks.py", 31, "expire", "return Cart.objects.select_for_update(nowait=True).stale().delete()", ""}), ""}},
		},
		{
			name: "inventory.recount", queue: "celery", median: 3 * time.Second, sigma: 0.7,
			call:   func(rng) (string, string) { return "('berlin',)", "" },
			result: func(d rng) string { return fmt.Sprintf("{'counted': %d}", d.upTo(100, 900)) },
		},
		{
			name: "legacy.sync_erp", queue: "celery", unknown: true,
			call: func(d rng) (string, string) { return fmt.Sprintf("(%d,)", d.upTo(1, 99)), "" },
		},
	}
}
