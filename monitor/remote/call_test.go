package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/remote"
)

const (
	pong = `{"ok":"pong"}`
	ms   = time.Millisecond
)

// summary is what a reply says, but for its times.
type summary struct {
	Replies map[string]string // values by node
	Missing []string
	Unnamed int
	Lost    bool
	Waited  time.Duration
}

func summarize(a remote.Replies) summary {
	s := summary{Missing: a.Missing, Unnamed: a.Unnamed, Lost: a.Disconnected, Waited: a.Elapsed}
	for _, r := range a.Items {
		if s.Replies == nil {
			s.Replies = make(map[string]string)
		}
		s.Replies[r.Node] += r.OK + r.Error + r.Undecodable
	}
	return s
}

func TestAskReturnsWithTheLastReply(t *testing.T) {
	t.Parallel()
	both := map[string]string{"w1": "pong", "w2": "pong"}
	for name, test := range map[string]struct {
		question remote.Request
		blind    bool
		want     summary
	}{
		"destination": {
			question: remote.Request{Destination: []string{"w2", "w1", "w2"}},
			want:     summary{Replies: both, Waited: 50 * ms},
		},
		"part of the workers": {
			question: remote.Request{Destination: []string{"w1"}},
			want:     summary{Replies: map[string]string{"w1": "pong"}, Waited: 10 * ms},
		},
		"expected": {
			question: remote.Request{Expect: []string{"w1", "w2"}}, blind: true,
			want: summary{Replies: both, Waited: 50 * ms},
		},
		"more mailboxes than expected": {
			question: remote.Request{Expect: []string{"w1"}},
			want:     summary{Replies: map[string]string{"w1": "pong"}, Waited: 10 * ms},
		},
		"counted": {want: summary{Replies: both, Waited: 50 * ms}},
		"nothing to go by": {
			question: remote.Request{Timeout: 700 * ms}, blind: true,
			want: summary{Replies: both, Waited: 700 * ms},
		},
		"one is not there": {
			question: remote.Request{Destination: []string{"w9", "w1", "w3"}},
			want:     summary{Replies: map[string]string{"w1": "pong"}, Missing: []string{"w3", "w9"}, Waited: 2 * time.Second},
		},
		"others than expected": {
			question: remote.Request{Expect: []string{"w9"}, Timeout: time.Second},
			want:     summary{Replies: both, Missing: []string{"w9"}, Waited: time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T) {
				f := newFleet(t)
				f.add(t, "w1", says(pong, 10*ms))
				f.add(t, "w2", says(pong, 50*ms))
				var b broker.Broker = f
				if test.blind {
					b = blind{f}
				}
				c := newClient(t, b)
				run(t, c.Run)
				test.question.Method = "ping"
				got, err := c.Call(t.Context(), test.question)
				if err != nil {
					t.Fatalf("ask: %v", err)
				}
				if diff := cmp.Diff(test.want, summarize(got)); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAskCountsThoseWhomNobodyNamed(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 0))
		f.add(t, "w2", mute)
		f.add(t, "w3", mute)
		c := newClient(t, f)
		run(t, c.Run)
		for name, test := range map[string]struct {
			question remote.Request
			want     summary
		}{
			"nobody is named": {
				remote.Request{Method: "ping"},
				summary{Replies: map[string]string{"w1": "pong"}, Unnamed: 2, Waited: 2 * time.Second},
			},
			"one is named": {
				remote.Request{Method: "ping", Expect: []string{"w2"}},
				summary{Replies: map[string]string{"w1": "pong"}, Missing: []string{"w2"}, Unnamed: 1, Waited: 2 * time.Second},
			},
			"nobody else is asked": {
				remote.Request{Method: "ping", Destination: []string{"w2"}}, summary{Missing: []string{"w2"}, Waited: 2 * time.Second},
			},
		} {
			got, err := c.Call(t.Context(), test.question)
			if err != nil {
				t.Fatalf("%s: ask: %v", name, err)
			}
			if diff := cmp.Diff(test.want, summarize(got)); diff != "" {
				t.Errorf("%s: answers (-want +got):\n%s", name, diff)
			}
		}
	})
}

// TestBeatIsNoWorker pings as Celery 5.7 does, whose beat replies too.
func TestBeatIsNoWorker(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 10*ms))
		f.add(t, "celerybeat@h", says(pong, 20*ms))
		c := newClient(t, f)
		run(t, c.Run)
		for name, test := range map[string]struct {
			question remote.Request
			want     summary
		}{
			"nobody is named": {remote.Request{Method: "ping"}, summary{Replies: map[string]string{"w1": "pong"}, Waited: 20 * ms}},
			"beat is named": {
				remote.Request{Method: "ping", Destination: []string{remote.BeatNode("h")}},
				summary{Replies: map[string]string{"celerybeat@h": "pong"}, Waited: 20 * ms},
			},
		} {
			got, err := c.Call(t.Context(), test.question)
			if err != nil {
				t.Fatalf("%s: ask: %v", name, err)
			}
			if diff := cmp.Diff(test.want, summarize(got)); diff != "" {
				t.Errorf("%s: answers (-want +got):\n%s", name, diff)
			}
		}
	})
}

func TestAskWithNobodyThere(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		c := newClient(t, newFleet(t))
		run(t, c.Run)
		got, err := c.Call(t.Context(), remote.Request{Method: "ping"})
		if err != nil || got.Elapsed != 0 || len(got.Items) != 0 {
			t.Errorf("answers = %+v, error %v, want none at once", got, err)
		}
	})
}

func TestRepliesThatAreNotData(t *testing.T) {
	t.Parallel()
	const pickle = "reply is a pickle (application/x-python-serialize): set accept_content and task_serializer to json"
	for name, test := range map[string]struct {
		answers []answer
		want    remote.Reply
	}{
		"error":        {[]answer{{value: `{"error":"KeyError('x')"}`}}, remote.Reply{Node: "w", Value: json.RawMessage(`{"error":"KeyError('x')"}`), Error: "KeyError('x')"}},
		"ok":           {[]answer{{value: pong}}, remote.Reply{Node: "w", Value: json.RawMessage(pong), OK: "pong"}},
		"null":         {[]answer{{value: `null`}}, remote.Reply{Node: "w", Value: json.RawMessage(`null`)}},
		"more than ok": {[]answer{{value: `{"error":"x","ok":"y"}`}}, remote.Reply{Node: "w", Value: json.RawMessage(`{"error":"x","ok":"y"}`)}},
		"error is data": {
			[]answer{{value: `{"error":["active",{}]}`}},
			remote.Reply{Node: "w", Value: json.RawMessage(`{"error":["active",{}]}`)},
		},
		"pickle with a name": {
			[]answer{{mime: "application/x-python-serialize", plain: "\x80\x02}X\x01\x00\x00\x00wNs."}},
			remote.Reply{Node: "w", Undecodable: pickle},
		},
		"pickle of an object": {
			[]answer{{mime: "application/x-python-serialize", plain: "cos\nsystem\n."}}, remote.Reply{Node: "w", Undecodable: pickle},
		},
		"msgpack": {
			[]answer{{mime: "application/x-msgpack", plain: "\x81\xa1w\x01"}},
			remote.Reply{Node: "w", Value: json.RawMessage("1")},
		},
		"cut short": {
			[]answer{{plain: `{"w":`}}, remote.Reply{Node: "w", Undecodable: "decode reply: malformed JSON"},
		},
		"two workers of one name": {
			[]answer{{value: "1"}, {value: "1"}}, remote.Reply{Node: "w", Value: json.RawMessage("1"), Duplicate: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T) {
				f := newFleet(t)
				f.add(t, "w", func(request) []answer { return test.answers })
				c := newClient(t, f)
				run(t, c.Run)
				v, err := c.Send(t.Context(), remote.Request{Method: "query_task", Destination: []string{"w"}})
				if err != nil {
					t.Fatalf("send: %v", err)
				}
				synctest.Wait() // all replies are there
				got := v.Wait(t.Context())
				if len(got.Missing) != 0 || got.Elapsed != 0 || len(got.Items) != len(test.answers) {
					t.Fatalf("answers = %+v, want %d at once", got, len(test.answers))
				}
				for _, r := range got.Items {
					test.want.At, test.want.Clock = time.Now(), 7
					if diff := cmp.Diff(test.want, r); diff != "" {
						t.Errorf("reply (-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

func TestRepliesWithoutNamesStayApart(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		foreign := func(request) []answer { return []answer{{mime: "application/x-other", plain: "?", after: ms}} }
		f.add(t, "w1", foreign)
		f.add(t, "w2", mute)
		f.add(t, "w3", says(pong, 0))
		c := newClient(t, f)
		run(t, c.Run)
		got, err := c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"w1", "w2", "w3"}})
		if err != nil {
			t.Fatalf("ask: %v", err)
		}
		want := summary{
			Replies: map[string]string{"w3": "pong", "": "reply is not JSON, MessagePack or YAML (application/x-other): set task_serializer to json"},
			Missing: []string{"w1", "w2"}, Waited: 2 * time.Second,
		}
		if diff := cmp.Diff(want, summarize(got)); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

func TestUnmatchedRepliesAreDropped(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "late", says(pong, 3*time.Second))
		f.add(t, "rude", func(r request) []answer {
			r.Ticket = "of another"
			f.reply("rude", r, answer{value: pong})
			f.Reply(*r.ReplyTo, broker.Publishing{Body: []byte("x")})
			return nil
		})
		c := newClient(t, f)
		run(t, c.Run)
		got, err := c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"late", "rude"}})
		if err != nil || len(got.Items) != 0 || len(got.Missing) != 2 {
			t.Errorf("answers = %+v, error %v, want none", got, err)
		}
		<-time.After(2 * time.Second)
		if got, err = c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"late"}, Timeout: 4 * time.Second}); err != nil || len(got.Items) != 1 {
			t.Errorf("answers to the next call = %+v, error %v, want the reply to it alone", got, err)
		}
	})
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w", func(r request) []answer {
			return []answer{{value: `{"ok":"` + r.Arguments["n"].(string) + `"}`, after: ms}}
		})
		c := newClient(t, f)
		run(t, c.Run)
		var open []*remote.Call
		for n := range 100 {
			v, err := c.Send(t.Context(), remote.Request{
				Method: "ping", Destination: []string{"w"}, Arguments: map[string]any{"n": strings.Repeat("x", n)},
			})
			if err != nil {
				t.Fatalf("send: %v", err)
			}
			open = append(open, v)
		}
		for n, v := range open {
			if got := v.Wait(t.Context()); len(got.Items) != 1 || got.Items[0].OK != strings.Repeat("x", n) {
				t.Errorf("answers to question %d = %+v", n, got)
			}
		}
	})
}

func TestTicketNamesOneCall(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w", says(pong, ms))
		c := newClient(t, f)
		run(t, c.Run)
		q := remote.Request{Method: "ping", Destination: []string{"w"}, Ticket: "row-1"}
		v, err := c.Send(t.Context(), q)
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		if _, err := c.Send(t.Context(), q); err == nil || errors.Is(err, remote.ErrUnavailable) {
			t.Errorf("second conversation of one ticket: error %v, want one of its own", err)
		}
		v.Wait(t.Context())
		if got, err := c.Call(t.Context(), q); err != nil || len(got.Items) != 1 {
			t.Errorf("answers to the ticket used anew = %+v, error %v", got, err)
		}
		if got := f.requests()[0].Ticket; got != "row-1" {
			t.Errorf("ticket = %q, want row-1", got)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w", mute)
		c := newClient(t, f)
		run(t, c.Run)
		v, err := c.Send(t.Context(), remote.Request{Method: "ping", Destination: []string{"w"}})
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		if got := v.Wait(ctx); got.Elapsed != 300*ms || len(got.Missing) != 1 || got.Disconnected {
			t.Errorf("answers = %+v, want w missing after 300ms", got)
		}
	})
}

func TestRequestThatIsNoJSON(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		c := newClient(t, f)
		run(t, c.Run)
		_, err := c.Call(t.Context(), remote.Request{Method: "pool_grow", Arguments: map[string]any{"n": make(chan int)}})
		if err == nil || errors.Is(err, remote.ErrUnavailable) {
			t.Errorf("error = %v, want one of the argument", err)
		}
	})
}

func TestSecretsOfWorkersAreMasked(t *testing.T) {
	t.Parallel()
	for method, test := range map[string]struct{ value, want string }{
		"conf":      {`{"broker_url":"redis://:hunter2@h/0","my_token":"hunter2"}`, `{"broker_url":"redis://:********@h/0","my_token":"********"}`},
		"dump_conf": {`{"sentry_dsn":"hunter2"}`, `{"sentry_dsn":"********"}`},
		"stats": {
			`{"broker":{"alternates":["amqp://u:hunter2@h1//"]},"total":{"keys.rotate":3}}`,
			`{"broker":{"alternates":["amqp://u:********@h1//"]},"total":{"keys.rotate":3}}`,
		},
		"pool_grow": {`{"error":"OperationalError('amqp://u:hunter2@h')"}`, `{"error":"OperationalError('amqp://u:********@h')"}`},
		"active":    {`[{"id":"1","kwargs":{"password":"shown"}}]`, `[{"id":"1","kwargs":{"password":"shown"}}]`},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T) {
				f := newFleet(t)
				f.add(t, "w", says(test.value, 0))
				c := newClient(t, f)
				run(t, c.Run)
				got, err := c.Call(t.Context(), remote.Request{Method: method, Destination: []string{"w"}})
				if err != nil || len(got.Items) != 1 {
					t.Fatalf("answers = %+v, error %v", got, err)
				}
				r := got.Items[0]
				if string(r.Value) != test.want {
					t.Errorf("value = %s, want %s", r.Value, test.want)
				}
				if strings.Contains(r.Error, "hunter2") {
					t.Errorf("error = %q, with the password", r.Error)
				}
			})
		})
	}
}

func TestWhatIsTooLongToMaskIsNotShown(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w", says(`{"x":"`+strings.Repeat("amqp://u:hunter2@h ", 150_000)+`"}`, 0))
		c := newClient(t, f)
		run(t, c.Run)
		got, err := c.Call(t.Context(), remote.Request{Method: "conf", Destination: []string{"w"}})
		if err != nil || len(got.Items) != 1 || got.Items[0].Value != nil || got.Items[0].Undecodable == "" {
			t.Errorf("answers = %.200v, error %v, want one that is undecodable", got, err)
		}
	})
}

func TestListenTellsRepliesAsTheyComeIn(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 10*ms))
		f.add(t, "w2", says(pong, 50*ms))
		f.add(t, "w3", mute)
		c := newClient(t, f)
		run(t, c.Run)
		began := time.Now()
		v, err := c.Send(t.Context(), remote.Request{Method: "ping", Expect: []string{"w1", "w2", "w3"}, Timeout: time.Second})
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		heard := make(map[string]time.Duration)
		a := v.WaitEach(t.Context(), func(replies []remote.Reply) {
			for _, r := range replies {
				if _, again := heard[r.Node]; again {
					t.Errorf("%s was heard twice", r.Node)
				}
				heard[r.Node] = time.Since(began)
			}
		})
		if diff := cmp.Diff(map[string]time.Duration{"w1": 10 * ms, "w2": 50 * ms}, heard); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"w3"}, a.Missing); diff != "" || a.Elapsed != time.Second || len(a.Items) != 2 {
			t.Errorf("after %v with %d replies, missing (-want +got):\n%s", a.Elapsed, len(a.Items), diff)
		}
	})
}
