package main

import (
	"fmt"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// resultFlags say where the workers store results.
type resultFlags struct {
	ResultBackend     string `env:"UMBEL_RESULT_BACKEND,CELERY_RESULT_BACKEND" placeholder:"URL" help:"The workers' result_backend, to show stored results: redis://, sentinel://, db+sqlite:///, db+postgresql://, django-db+postgresql://."`
	ResultBackendFile string `env:"UMBEL_RESULT_BACKEND_FILE" placeholder:"FILE" help:"Read the URL of the result backend from a file."`
	ResultMaster      string `env:"UMBEL_RESULT_MASTER" placeholder:"NAME" help:"master_name of the result backend's sentinels."`
	SentinelUser      string `name:"result-sentinel-user" env:"UMBEL_RESULT_SENTINEL_USER" placeholder:"NAME" help:"User for the result backend's sentinels."`
	SentinelPassword  string `name:"result-sentinel-password" env:"UMBEL_RESULT_SENTINEL_PASSWORD" placeholder:"WORD" help:"Password for the result backend's sentinels."`
	ResultKeyPrefix   string `env:"UMBEL_RESULT_KEY_PREFIX" placeholder:"PREFIX" help:"global_keyprefix of the result backend."`
	ResultTable       string `env:"UMBEL_RESULT_TABLE" placeholder:"NAME" help:"Table of results, if not celery_taskmeta; may include a schema."`
}

// results sets the flags in o. Its error names the flag that is wrong.
func (f *resultFlags) results(o *dashboard.Options) error {
	url, source, err := secret("--result-backend", f.ResultBackend, f.ResultBackendFile)
	if err != nil {
		return err
	}
	o.ResultBackend, o.ResultMaster = url, f.ResultMaster
	o.ResultSentinelUsername, o.ResultSentinelPassword = f.SentinelUser, f.SentinelPassword
	o.ResultKeyPrefix, o.ResultTable = f.ResultKeyPrefix, f.ResultTable
	b, err := dashboard.Results(*o)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", source, err)}
	}
	if b == nil {
		return nil
	}
	return b.Close()
}
