package umbel_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/umbelhq/umbel"
)

const url = "amqp://guest:guest@127.0.0.1:1//"

func TestNewRefusesWrongOptions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options umbel.Options
		want    string
	}{
		"no URL":                   {umbel.Options{}, "no broker URL"},
		"Redis and RabbitMQ":       {umbel.Options{BrokerURL: url, Redis: umbel.RedisOptions{KeyPrefix: "x"}}, "need a URL of Redis"},
		"certificates without TLS": {umbel.Options{BrokerURL: url, TLS: umbel.TLS{CAFile: "ca.pem"}}, "amqps://"},
		"prefix":                   {umbel.Options{BrokerURL: url, Prefix: "/a?b"}, "plain path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := umbel.New(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestHistoryInUseIsReported(t *testing.T) {
	t.Parallel()
	o := umbel.Options{BrokerURL: url, DataDir: t.TempDir()}
	u, err := umbel.New(o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = umbel.New(o)
	failed, ok := errors.AsType[*umbel.HistoryError](err)
	if !ok || !errors.Is(failed, umbel.ErrLocked) || errors.Is(failed, umbel.ErrNewer) {
		t.Errorf("New of a history in use = %v, want a HistoryError that is ErrLocked", err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

// TestOptionsAreOwnTypes lets no type of a package that may change into the promise.
func TestOptionsAreOwnTypes(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{reflect.TypeFor[umbel.Options](), reflect.TypeFor[umbel.RedisOptions](), reflect.TypeFor[umbel.TLS](), reflect.TypeFor[umbel.Retention]()} {
		for f := range of.Fields() {
			typ := f.Type
			if typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if path := typ.PkgPath(); strings.HasPrefix(path, "github.com/umbelhq/umbel/") {
				t.Errorf("%s.%s is of type %s", of, f.Name, f.Type)
			}
		}
	}
}
