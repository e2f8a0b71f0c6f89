package query_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// noon is when queries are asked.
func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// failedTask was retried once on another worker, then failed an hour before noon.
func failedTask() state.Task {
	at := func(before time.Duration) int64 { return noon().Add(-before).UnixMicro() }
	last := state.Times{ReceivedAt: at(61 * time.Minute), StartedAt: at(60*time.Minute + 2*time.Second), FailedAt: at(time.Hour)}
	return state.Task{
		ID: "3f2a-77", Name: new("billing.Charge"), State: state.Failure,
		Args: new("(42, 'Grüße')"), Kwargs: new("{'user': 7}"), Exception: new("ValueError('no')"), Traceback: new("line 40"),
		Worker: new("celery@b"), Client: new("web@1"), Queue: new("fast lane"), RoutingKey: new("k"),
		Retries: new(int64(1)), ETA: new("2026-11-20T13:00:00+02:00"), Expires: new("soon"),
		RootID: new("r-1"), ParentID: new("p-1"),
		SentAt: at(2 * time.Hour), Times: last, UpdatedAt: at(time.Hour),
		WaitSeconds: new(3538.0), RuntimeSeconds: new(2.0000004), Stamp: clock.Stamp{Clock: 918},
		Executions: []state.Execution{
			{Worker: "celery@a", State: state.Retry, Exception: new("TimeoutError()"), Traceback: new("line 7"), Times: state.Times{RetriedAt: 1}},
			{Worker: "celery@b", State: state.Failure, Exception: new("ValueError('no')"), Traceback: new("line 40"), Times: last},
		},
		Truncated: true,
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		yes, no []string
	}{
		"nothing asked": {[]string{"", "*"}, nil},
		"id":            {[]string{"id:3f2a-77", "id:3f2a*", "id:*-77", "id:~2A"}, []string{"id:3f2a", "id:3F2A-77", "id:3f2a*8"}},
		"name": {
			[]string{"name:billing.Charge", "name:billing.*", "name:b*.*e", "name:~CHARGE", "name:x,billing.Charge"},
			[]string{"name:billing", "name:billing.charge", "name:Billing.*", "name:*l.*.*", "-name:billing.*"},
		},
		"quoted star": {nil, []string{`name:"billing.*"`, `name:"*"`}},
		"worker":      {[]string{"worker:celery@b"}, []string{"worker:celery@a"}},
		"queue":       {[]string{`queue:"fast lane"`, `queue:"fast "*`}, []string{"queue:fast"}},
		"client":      {[]string{"client:web@*"}, []string{"client:celery@b"}},
		"routing key": {[]string{"routing_key:k"}, []string{"routing_key:K"}},
		"root":        {[]string{"root:r-1", "root:3f2a-77", "root:r*"}, []string{"root:p-1"}},
		"parent":      {[]string{"parent:p-1"}, []string{"parent:r-1"}},
		"unknown":     {[]string{"-exchange:a", "-exchange:*", "-result:x"}, []string{"exchange:a", "exchange:*", "result:*"}},
		"state":       {[]string{"state:failure", "state:success,Failure"}, []string{"state:success", "-state:failure"}},
		"is": {
			[]string{"is:finished", "is:retried", "is:truncated", "is:active,finished"},
			[]string{"is:active", "is:orphaned", "is:redelivered"},
		},
		"args":   {[]string{"args:42", "args:GRÜßE", `args:"(42, "`, "args:42*gr"}, []string{"args:43", "args:gr*42", "args:user"}},
		"kwargs": {[]string{"kwargs:user", "kwargs:*"}, []string{"kwargs:42"}},
		"exc":    {[]string{"exc:valueerror", "exc:TimeoutError", "exc:*"}, []string{"exc:KeyError", "-exc:timeout"}},
		"trace":  {[]string{`trace:~"line 7"`, `trace:"line 40"`}, []string{"trace:~line8"}},
		"free text": {
			[]string{"3F2A", "charge", "42", "user", "timeout", `"line 40"`, "val*no", "3f*7"},
			[]string{"f2a", "celery@b", "lane", "timeout*value"},
		},
		"sent": {
			[]string{"sent:2026-11-20", "sent:2026-11-20T10:00", "sent:-2h..", "sent:-2h..-90m", "sent:<=2026-11-20", "sent:>=2026-11-20T10:00"},
			[]string{"sent:2026-11-19", "sent:2026-11-20T10:01", "sent:>-2h", "sent:>2026-11-20", "sent:>2026-11-20T10:00", "sent:now.."},
		},
		"received": {[]string{"received:2026-11-20T10:30..11:00"}, []string{"received:..2026-11-20T10:58"}},
		"started":  {[]string{"started:2026-11-20T11:30+01:00..2026-11-20T12:00+01:00"}, []string{"started:2026-11-20T11:00..now"}},
		"finished": {[]string{"finished:-1h..now"}, []string{"finished:-1h.. -is:finished"}},
		"updated":  {[]string{"updated:>-61m"}, []string{"updated:<-61m"}},
		"eta":      {[]string{"eta:..now", "eta:2026-11-20T11:00"}, []string{"eta:>now"}},
		"expires":  {[]string{"-expires:..+99d", "-expires:*"}, []string{"expires:..+99d", "expires:*"}},
		"wait":     {[]string{"wait:>58m", "wait:58m..59m", "wait:3538s"}, []string{"wait:<58m58s"}},
		"run":      {[]string{"run:2s", "run:>=2s", "run:<=2s"}, []string{"run:>2s", "run:<2s", "run:0"}},
		"retries":  {[]string{"retries:>0", "retries:1", "retries:0..1", "retries:7,1"}, []string{"retries:>1", "retries:0"}},
		"clock":    {[]string{"clock:>917", "clock:918"}, []string{"clock:>918"}},
		"and or not": {
			[]string{"state:failure run:>1s", "state:success OR run:>1s", "-(state:success run:>1s)", "state:success x OR 42", "(x OR 42) is:finished"},
			[]string{"state:failure run:>3s", "state:success OR run:>3s", "-(state:failure OR x)", "state:success (x OR 42)"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := failedTask()
			for _, s := range tt.yes {
				if !parse(t, s).Match(&task, noon()) {
					t.Errorf("%s does not match", s)
				}
			}
			for _, s := range tt.no {
				if parse(t, s).Match(&task, noon()) {
					t.Errorf("%s matches", s)
				}
			}
		})
	}
}

func TestNothingIsKnownOfANewTask(t *testing.T) {
	t.Parallel()
	task := state.Task{ID: "x", State: state.Pending}
	for _, f := range query.Fields() {
		switch f.Type() {
		case query.Set:
			continue
		default:
		}
		q := parse(t, f.String()+":*")
		if got, want := q.Match(&task, noon()), f == query.ID || f == query.Root; got != want {
			t.Errorf("%s matches: %v, want %v", q, got, want)
		}
	}
	if !parse(t, "is:active").Match(&task, noon()) {
		t.Error("a pending task is not active")
	}
}

func TestFinishedIsTheTimeOfTheLastState(t *testing.T) {
	t.Parallel()
	times := state.Times{SucceededAt: 1, FailedAt: 2, RevokedAt: 3, RejectedAt: 4, RetriedAt: 5}
	for s, want := range map[state.State]int64{
		state.Success: 1, state.Failure: 2, state.Revoked: 3, state.Rejected: 4, state.Retry: 0, state.Started: 0, "CUSTOM": 0,
	} {
		got, known := query.Finished.Int(&state.Task{State: s, Times: times})
		if got != want || known != (want != 0) {
			t.Errorf("finished time of a task in %s = %d, %v, want %d", s, got, known, want)
		}
	}
}

func parse(t *testing.T, s string) query.Query {
	t.Helper()
	q, err := query.Parse(s)
	if err != nil {
		t.Fatalf("Parse(%q): %v", s, err)
	}
	return q
}
