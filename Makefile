# Every tool is pinned in .ci/tools.mod, so that importers of the SDK do not inherit it.
GO   ?= go
TOOL  = $(GO) tool -modfile=.ci/tools.mod

VERSION := 0.1.0
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
PLUGINS := $(patsubst plugins/%/main.go,%,$(wildcard plugins/*/main.go))
TAGS    ?=
DEMO    ?= demo-out

export CGO_ENABLED = 0

.PHONY: help build demo test race lint fuzz-short bench bench-cluster soak torture model generate clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## bin/datalink and the bundled connectors in bin/plugins
	@mkdir -p bin/plugins
	$(GO) build -tags '$(TAGS)' -ldflags '-s -w' -o bin/plugins/ $(PLUGINS:%=./plugins/%)
	$(GO) build -tags '$(TAGS)' -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.bundled=$$(cd bin/plugins && sha256sum $(PLUGINS) | awk '{printf "%s%s=%s", (NR > 1 ? "," : ""), $$2, $$1}')" -o bin/datalink ./host/cmd/datalink

demo: build ## move recorded MySQL and MariaDB binlogs into SQLite; needs Go only
	@mkdir -p $(DEMO)
	GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -o $(DEMO)/mask-go.wasm ./examples/mask-go
	$(GO) build -o bin/localregistry ./host/cmd/localregistry
	$(GO) build -o bin/demo ./examples/quickstart/demo
	@bin/demo -dir $(DEMO)

generate: ## write generated code again
	$(GO) run -modfile=.ci/tools.mod sdk/proto/generate.go

lint: ## gofumpt, vet and staticcheck; nothing to say is success
	@test -z "$$($(TOOL) gofumpt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) vet -tags faults ./...
	$(TOOL) staticcheck ./...

test: build ## run every test; ends with what could not run here and why
	@.ci/test

fuzz-short: ## each fuzz target for five seconds
	@.ci/fuzz 5s

bench: ## speed and memory as ratios to what is replaced; five minutes on a quiet machine
	$(GO) build -o bin/bench ./host/cmd/bench
	@bin/bench

soak: ## 200 rounds of killing random processes; DATALINK_CRASH_SEED=… repeats a run
	DATALINK_CRASH_ROUNDS=$${DATALINK_CRASH_ROUNDS:-200} $(GO) test -v -count=1 -timeout 60m -run TestRandomKills ./host/crashtest
	DATALINK_CONTINUOUS=$${DATALINK_CONTINUOUS:-150} $(GO) test -v -count=1 -timeout 60m ./plugins/mysql/internal/continuous
	DATALINK_SOAK=1 $(GO) test -v -count=1 -timeout 60m -run Conformance ./plugins/rdbms/internal/postgres ./plugins/rdbms/internal/mysql
	DATALINK_LARGE=1073741824 $(GO) test -v -count=1 -timeout 20m -run TestLargeTransaction ./host/bench

torture: ## stop, cut and kill workers, ZooKeeper and databases at random; DATALINK_SEED=… repeats a run
	DATALINK_TORTURE=$${DATALINK_TORTURE:-5m} $(GO) test -v -count=1 -timeout 60m -run 'TestTorture$$' ./host/clustertest
	DATALINK_OUTAGE=$${DATALINK_OUTAGE:-5m} $(GO) test -v -count=1 -timeout 60m -run TestOutage ./host/clustertest
	DATALINK_SEEDS=$${DATALINK_SEEDS:-10} $(GO) test -v -count=1 -timeout 90m -run TestTortureWithoutFence ./host/clustertest

bench-cluster: ## how long tasks are not there when they move or their worker is killed, and what 1,000 idle ones cost; on a quiet machine
	DATALINK_FIGURES=1 $(GO) test -v -count=1 -timeout 20m -run TestFigures ./host/clustertest
	DATALINK_TASKS=$${DATALINK_TASKS:-1000} $(GO) test -v -count=1 -timeout 20m -run TestManyTasks ./host/cluster
	$(GO) test -run xxx -bench BenchmarkAssign ./host/cluster

model: ## search all interleavings of workers, store and target within wider bounds than make test does
	DATALINK_MODEL=1 $(GO) test -v -count=1 -timeout 60m ./host/model

race: ## run the tests of host, coordination and SDK under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race ./sdk/... ./host/... ./coordination/... ./registry/...

clean: ## remove what was built and what the demo left
	rm -rf bin $(DEMO)
