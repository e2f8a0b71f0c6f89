.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
export GOTOOLCHAIN := local

# Tests compile as the release does, so that nothing is compiled twice. Only the race detector needs cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

TOOL := go tool -modfile=go.tool.mod
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 # not in go.tool.mod: its YAML is not golangci-lint's
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
FUZZTIME ?= 30s
BENCH ?= .
BENCHCOUNT ?= 6
MILLIONS ?= 1 3 10
UMBEL_GROWTH_DIR ?=

# SQLite and its libc, which are C turned into Go, take five times as long under the race detector, and share no memory
# that Go code could race for. What uses them is still looked at.
RACE := -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false

# make lint vets.
NO_VET := -vet=off

# Packages whose tests take longest start first.
LONGEST := ./cmd/umbel ./web ./monitor/history/sqlite ./monitor/remote ./web/flower ./monitor/command ./monitor/outboxwatch/database \
	./monitor/broker/rabbitmq ./internal/testdjango ./monitor/simulate ./monitor/ingest ./web/live

# Tests of whole programs wait more than they compute.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
OVERLAP := -p $(CORES) -parallel $(shell expr $(CORES) \* 3)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

generate: ## turn templates into Go
	$(TOOL) templ generate -log-level warn

fmt: ## format Go (gofumpt, imports) and templates
	$(TOOL) golangci-lint fmt
	$(TOOL) templ fmt -log-level warn templates internal/spacetime

lint: ## golangci-lint, import rules included; TypeScript over the scripts of the pages; mypy over Python; actionlint over workflows; what is in deploy/
	scripts/deps
	.services/typescript/node_modules/.bin/tsc --project scripts/typescript
	cd python && ../.services/mypy/bin/mypy --no-error-summary --cache-dir ../.services/mypy/cache --python-executable ../.services/venv/bin/python
	go run $(ACTIONLINT)
	scripts/deployment
	$(TOOL) golangci-lint run

test: ## all tests but those of make e2e, on real brokers and in a browser
	scripts/deps
	scripts/services run go test $(NO_VET) $(OVERLAP) -skip EndToEnd -timeout 30m $(LONGEST) ./...

race: export CGO_ENABLED := 1
race: ## the tests that run in one program, with the race detector
	scripts/deps
	scripts/services run go test -short $(NO_VET) $(RACE) $(OVERLAP) -timeout 30m $(filter-out ./cmd/%,$(LONGEST)) $$(go list ./... | grep -v /cmd/)

contract: ## generated requests to a demo, whose answers must be as the OpenAPI document says
	scripts/deps
	scripts/contract

thorough: ## what make test tries a tenth of: every random case
	scripts/deps
	UMBEL_TEST_THOROUGH=1 scripts/services run go test -timeout 60m -count 1 ./...

simulate: ## what Umbel concludes compared with the truth of 10,000 simulated histories
	UMBEL_TEST_THOROUGH=1 go test -timeout 60m -count 1 -v ./monitor/simulate/truth

e2e: ## the tests named EndToEnd: real Celery, broker and browser
	scripts/deps
	scripts/services run go test $(NO_VET) $(OVERLAP) -run EndToEnd -timeout 20m \
		$$(git grep -l '^func Test.*EndToEnd' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')

rabbitmq4: ## what depends on RabbitMQ's version, on RabbitMQ 4
	scripts/deps
	rabbitmq=$$(scripts/rabbitmq4); UMBEL_RABBITMQ=$$rabbitmq scripts/services run \
		go test -timeout 10m -count 1 ./monitor/broker/rabbitmq ./monitor/remote

fuzz: ## FUZZTIME (30s) of each fuzz target
	@git grep --untracked -o '^func Fuzz[[:alnum:]_]*' -- '*_test.go' | while IFS=: read -r file target; do \
		go test "./$$(dirname "$$file")" -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME); \
	done

bench: ## benchmarks that match BENCH, BENCHCOUNT (6) times, into bench.txt for benchstat
	scripts/deps
	scripts/services run go test -timeout 2h -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCHCOUNT) ./... | tee bench.txt

bench-flower: ## Umbel beside Flower, with the same bursts of events: a table
	scripts/deps
	scripts/services run go test -timeout 20m -run '^$$' -bench BesideFlower -benchtime 1x ./cmd/umbel

bench-large: ## how reading grows with the history: MILLIONS (1 3 10) of tasks, kept in UMBEL_GROWTH_DIR, into docs/images/growth.svg
	go run ./internal/growth -dir "$(UMBEL_GROWTH_DIR)" -plot docs/images/growth.svg $(MILLIONS)

vulnerabilities: ## known ones in code that Umbel calls, where the database can be reached
	scripts/vulnerabilities

allocations: ## how often benchmarks allocate, compared with scripts/allocations.txt
	scripts/allocations

build: generate ## static binary in bin/
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/umbel ./cmd/umbel

wheels: generate ## Python wheels for all PLATFORMS, such as linux/arm64, in dist/
	python3 python/build_wheel.py --version "$(VERSION)" $(PLATFORMS)

platforms: ## Umbel compiles where no test runs: Windows and macOS
	for os in windows darwin; do GOOS=$$os go build -o /dev/null ./cmd/umbel; done

demo: ## a simulated cluster on http://127.0.0.1:5555/; needs only Go
	go run ./cmd/umbel demo

screenshots: ## the pictures of the documentation, from a demo
	scripts/screenshots

verify: ## generated code, formatting and go.mod are current
	scripts/verify

check: ## what CI runs: verify, lint, platforms, vulnerabilities, contract, allocations, test, e2e, race
	@for stage in verify lint platforms vulnerabilities contract allocations test e2e race; do \
		start=$$SECONDS; \
		$(MAKE) --no-print-directory $$stage; \
		echo "== $$stage took $$((SECONDS - start)) s"; \
	done

clean: ## remove what the other targets made, the Celery environment too
	scripts/services down
	rm -rf bin dist .services bench.txt

.PHONY: help generate fmt lint test race contract thorough simulate e2e rabbitmq4 fuzz bench bench-flower bench-large allocations vulnerabilities build wheels platforms demo screenshots verify check clean
