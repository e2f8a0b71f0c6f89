package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate"
)

const (
	restFor    = 2 * time.Second        // in which a program that rests uses little
	looksEach  = 500 * time.Millisecond // at what a program has
	mostSettle = time.Minute            // after the last event
	asked      = 40                     // lists and searches whose latencies count
	rowsAsked  = 50
)

// BenchmarkBesideFlower publishes the same single events to Umbel, with its history on disk, and to Flower, each alone with
// RabbitMQ in turn and each time anew, and writes a table: what they keep, what that costs, and how soon they answer. Flower keeps as
// many tasks as there are, and saves them when it ends. make bench-flower runs it.
func BenchmarkBesideFlower(b *testing.B) {
	bodies := simulate.Typical(100_008, 1)
	rows := map[string]string{}
	var order []string
	for _, burst := range []struct{ rate, events int }{{1_000, 10_008}, {5_000, 50_016}, {20_000, 100_008}, {0, 100_008}} {
		for _, program := range []struct {
			name  string
			start func(b *testing.B, broker string) contender
		}{{"Umbel", startUmbel}, {"Flower", startFlower}} {
			name := fmt.Sprintf("rate=%d/%s", burst.rate, program.name)
			order = append(order, name)
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					broker := testenv.VirtualHost(b)
					m := program.start(b, broker).take(b, broker, bodies[:burst.events], burst.rate)
					rows[name] = m.row(program.name, burst.rate, burst.events)
					b.ReportMetric(0, "ns/op") // the table says more
				}
			})
		}
	}
	fmt.Fprint(os.Stdout, "\n| events/s | | events kept | CPU, s per 100,000 kept | memory per task | whole list correct after | list p50 / p95 | search p50 / p95 |\n",
		"|---|---|---|---|---|---|---|---|\n")
	for _, name := range order {
		fmt.Fprint(os.Stdout, rows[name])
	}
}

// contender is a program that shows tasks. Its functions ask it by HTTP.
type contender struct {
	*process
	events       func() (int, error) // that it has applied
	tasks        func() (int, error) // that it knows
	complete     func() (int, error) // that it shows in SUCCESS
	list, search string              // addresses of the newest tasks; to which the words looked for are added
}

func startUmbel(b *testing.B, broker string) contender {
	b.Helper()
	d := start(b, []string{"UMBEL_DATA_DIR=" + b.TempDir()}, "serve", "--broker-url", broker)
	d.connected(b)
	ask := func() (o overview, err error) {
		_, body, err := fetch(b.Context(), d.url+"api/v1/overview")
		if err == nil {
			err = json.Unmarshal(body, &o)
		}
		return o, err
	}
	return contender{
		process: d.process, list: fmt.Sprint(d.url, "tasks?limit=", rowsAsked), search: fmt.Sprint(d.url, "tasks?limit=", rowsAsked, "&q="),
		events:   func() (int, error) { o, err := ask(); return o.Health.Events, err },
		tasks:    func() (int, error) { o, err := ask(); return o.Counts.Tasks, err },
		complete: func() (int, error) { o, err := ask(); return o.Counts.ByState["SUCCESS"], err },
	}
}

func startFlower(b *testing.B, broker string) contender {
	b.Helper()
	address := freeAddress(b)
	_, port, _ := strings.Cut(address, ":")
	p := spawn(b, command([]string{"PYTHONWARNINGS=ignore"}, testenv.Flower(b), "-m", "celery", "--broker="+broker, "flower", "--address=127.0.0.1", "--port="+port,
		"--persistent=True", "--db="+filepath.Join(b.TempDir(), "flower"), "--max_tasks=1000000"))
	p.await(b, "Connected to amqp")
	at := "http://" + address
	table := fmt.Sprint(at, "/tasks/datatable?draw=1&start=0&order[0][column]=0&order[0][dir]=desc&columns[0][data]=received&length=", rowsAsked, "&search[value]=")
	counted := regexp.MustCompile(`(?m)^flower_events_total{.*} (\S+)$`)
	find := func(words string) (total, found int, err error) {
		var page struct {
			Total int `json:"recordsTotal"`
			Found int `json:"recordsFiltered"`
		}
		_, body, err := fetch(b.Context(), table+words)
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		return page.Total, page.Found, err
	}
	return contender{
		process: p, list: table, search: table,
		events: func() (int, error) {
			_, body, err := fetch(b.Context(), at+"/metrics")
			sum := 0.
			for _, m := range counted.FindAllSubmatch(body, -1) {
				n, _ := strconv.ParseFloat(string(m[1]), 64)
				sum += n
			}
			return int(sum), err
		},
		tasks:    func() (int, error) { total, _, err := find(""); return total, err },
		complete: func() (int, error) { _, found, err := find("state:SUCCESS"); return found, err },
	}
}

// measured is what a program did with a burst.
type measured struct {
	published     time.Duration
	kept, tasks   int
	cpu, grown    float64       // seconds; MB
	correct       time.Duration // after the last event, until every task was shown in SUCCESS; 0 if that did not happen
	lists, search []time.Duration
}

// take publishes events, at a rate unless that is 0, and waits until the program rests.
func (c contender) take(b *testing.B, broker string, bodies [][]byte, rate int) measured {
	b.Helper()
	c.rest(b, time.Now().Add(timeout), nil)
	cpu, memory := c.cpu(b), resident(b, c.process)
	begin := time.Now()
	publishAt(b, newRabbitBus(b, broker), bodies, rate)
	end := time.Now()
	m := measured{published: end.Sub(begin)}
	c.rest(b, end.Add(mostSettle), func() {
		if n, err := c.events(); err != nil || n < len(bodies) || m.correct > 0 {
			return
		}
		if n, err := c.complete(); err == nil && n == len(bodies)/3 {
			if _, _, err := fetch(b.Context(), c.list); err == nil {
				m.correct = time.Since(end)
			}
		}
	})
	m.cpu, m.grown = c.cpu(b)-cpu, resident(b, c.process)-memory
	var err error
	if m.kept, err = c.events(); err != nil {
		b.Fatal(err)
	}
	if m.tasks, err = c.tasks(); err != nil || m.kept == 0 {
		b.Fatalf("it has %d events: %v", m.kept, err)
	}
	words := wordsIn(bodies)
	for i := range asked {
		m.lists = append(m.lists, c.answer(b, c.list))
		m.search = append(m.search, c.answer(b, c.search+words[i*len(words)/asked]))
	}
	return m
}

// rest calls look again and again until the program has used less than a tenth of a core for a while, or late has come.
func (c contender) rest(b *testing.B, late time.Time, look func()) {
	b.Helper()
	tick := time.NewTicker(looksEach)
	defer tick.Stop()
	for since, used := time.Now(), c.cpu(b); ; <-tick.C {
		if look != nil {
			look()
		}
		now, cpu := time.Now(), c.cpu(b)
		switch {
		case now.After(late):
			return
		case now.Sub(since) < restFor:
		case cpu-used < now.Sub(since).Seconds()/10:
			return
		default:
			since, used = now, cpu
		}
	}
}

// cpu is the processor time that the program has used, in seconds.
func (c contender) cpu(b *testing.B) float64 {
	b.Helper()
	const ticks = 100 // a second, on every Linux
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	sum := 0.
	for _, field := range strings.Fields(after)[11:13] { // utime and stime
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n / ticks
	}
	return sum
}

// answer returns how long an address takes to answer.
func (c contender) answer(b *testing.B, address string) time.Duration {
	b.Helper()
	begin := time.Now()
	status, body, err := fetch(b.Context(), address)
	if err != nil || status != http.StatusOK {
		b.Fatalf("%s answered %d %s: %v", address, status, body, err)
	}
	return time.Since(begin)
}

// publishAt publishes bodies, rate a second, or as fast as the broker takes them if that is 0. It returns when the broker has them.
func publishAt(b *testing.B, bus *rabbitBus, bodies [][]byte, rate int) {
	b.Helper()
	if rate == 0 {
		bus.publishAll(b, bodies)
		return
	}
	last := len(bodies) - 1
	defer bus.publishAll(b, bodies[last:])
	bodies = bodies[:last]
	keys := make([]string, len(bodies))
	for i, body := range bodies {
		keys[i] = routingKey(b, body)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for i := 0; i < len(bodies); <-tick.C {
		for due := int(time.Since(begin).Seconds() * float64(rate)); i < min(due, len(bodies)); i++ {
			if err := bus.publish(b.Context(), keys[i], bodies[i]); err != nil {
				b.Fatalf("publish: %v", err)
			}
		}
	}
}

// wordsIn are numbers in the arguments of tasks, to look for: most are in one task.
func wordsIn(bodies [][]byte) []string {
	number := regexp.MustCompile(`\d{6}`)
	var words []string
	for _, body := range bodies {
		if n := number.FindString(field(body, "args")); n != "" {
			words = append(words, n)
		}
	}
	return words
}

// row is what was measured, in Markdown.
func (m measured) row(program string, rate, events int) string {
	reached := float64(events) / m.published.Seconds()
	rates := fmt.Sprintf("all at once (%.0f reached)", reached)
	if rate > 0 {
		rates = strconv.Itoa(rate)
		if reached < .95*float64(rate) {
			rates += fmt.Sprintf(" (%.0f reached)", reached)
		}
	}
	correct := "never"
	if m.correct > 0 {
		correct = fmt.Sprintf("%.1f s", m.correct.Seconds())
	}
	percentiles := func(took []time.Duration) string {
		slices.Sort(took)
		ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d.Microseconds())/1000) }
		return ms(took[len(took)/2]) + " / " + ms(took[len(took)*95/100]) + " ms"
	}
	return fmt.Sprintf("| %s | %s | %d of %d | %.1f | %.1f kB | %s | %s | %s |\n", rates, program, m.kept, events,
		m.cpu/float64(m.kept)*100_000, m.grown*1024/float64(max(m.tasks, 1)), correct, percentiles(m.lists), percentiles(m.search))
}
