package testenv_test

import (
	"runtime"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// probe records how a test would have ended.
type probe struct {
	testing.TB
	outcome string
}

func (p *probe) Helper() {}

func (p *probe) Fatalf(string, ...any) {
	p.outcome = "failed"
	runtime.Goexit()
}

func (p *probe) Skipf(string, ...any) {
	p.outcome = "skipped"
	runtime.Goexit()
}

func TestMissingProgramSkipsUnlessRequired(t *testing.T) {
	tests := map[string]struct {
		env         map[string]string
		wantOutcome string
		wantValue   string
	}{
		"set":             {env: map[string]string{"UMBEL_TEST_AMQP_URL": "amqp://h"}, wantOutcome: "passed", wantValue: "amqp://h"},
		"missing":         {wantOutcome: "skipped"},
		"missing in CI":   {env: map[string]string{"CI": "true"}, wantOutcome: "failed"},
		"required":        {env: map[string]string{"UMBEL_REQUIRE": "redis,amqp"}, wantOutcome: "failed"},
		"others required": {env: map[string]string{"UMBEL_REQUIRE": "redis"}, wantOutcome: "skipped"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"CI", "UMBEL_REQUIRE", "UMBEL_TEST_AMQP_URL"} {
				t.Setenv(key, tt.env[key])
			}
			p := &probe{TB: t, outcome: "passed"}
			var value string
			done := make(chan struct{})
			go func() {
				defer close(done)
				value = testenv.AMQP(p)
			}()
			<-done
			if p.outcome != tt.wantOutcome || value != tt.wantValue {
				t.Errorf("AMQP = %q and %s, want %q and %s", value, p.outcome, tt.wantValue, tt.wantOutcome)
			}
		})
	}
}
