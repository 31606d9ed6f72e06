# Development tasks. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The same everywhere: no flags and no workspace of someone's environment. Binaries carry no version control stamp,
# since that fails where git does not trust the folder.
export GOFLAGS := -buildvcs=false
export GOWORK := off

RIE_VERSION := v0.0.0-20261030222936-bef5c4ba774d

# For `make test` and `make test-go`: which packages, and more flags for go test, such as TESTFLAGS='-run TestFIFO'.
PACKAGES ?= ./...
TESTFLAGS ?=

# For `make bench`: batch sizes, latencies, rounds, such as BENCHFLAGS='-sizes 10,1000 -rounds 1'.
BENCHFLAGS ?=

# For `make chaos`: such as CHAOSFLAGS='-time 10m -seed 1'.
CHAOSFLAGS ?=

# For `make microbench`: which benchmarks, how often, where the results go, and results to compare them with.
BENCH ?= .
COUNT ?= 6
BENCHTIME ?= 1s
OUT ?= bench.txt
BASE ?=

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

.PHONY: test
test: tools fmt vet staticcheck tidy test-go examples bench-smoke ## everything that must hold, in this order
	@echo "all of it holds"

.PHONY: tools
tools: ## install what the tests need besides Go modules, into .tools/
	@scripts/step "tools for the tests, into .tools/ (once)" scripts/install-tools $(RIE_VERSION)

.PHONY: fmt
fmt: ## check that every Go file is formatted
	@scripts/step "gofmt" scripts/check-gofmt

.PHONY: vet
vet: ## go vet
	@scripts/step "go vet" go vet ./...

.PHONY: staticcheck
staticcheck: ## staticcheck, at the version in go.mod
	@scripts/step "staticcheck" go tool staticcheck ./...

.PHONY: tidy
tidy: ## check that go.mod and go.sum list what the code imports
	@scripts/step "go mod tidy -diff" go mod tidy -diff

.PHONY: test-go
test-go: ## all tests, with the race detector
	@scripts/step "go test -race $(PACKAGES)" scripts/go-test $(PACKAGES) $(TESTFLAGS)

.PHONY: examples
examples: ## build the Lambda functions and programs under examples/ for linux/arm64
	@scripts/step "examples for linux/arm64, tag lambda.norpc" scripts/build-examples

.PHONY: bench-smoke
bench-smoke: ## run every benchmark once, so that none rots
	@scripts/step "every benchmark, one iteration" scripts/bench-smoke

.PHONY: bench
bench: tools ## oncekit beside a hand-written loop and Powertools TypeScript, on one DynamoDB-compatible server
	@go run ./internal/comparison $(BENCHFLAGS)

.PHONY: model
model: ## explore the protocol's model with large bounds, and without each rule (2 to 3 min, 2.5 GB)
	@go run ./docs/model

.PHONY: chaos
chaos: tools ## kill and freeze processes at their work for a while, and check what they have done
	@go run ./internal/chaos $(CHAOSFLAGS)

.PHONY: microbench
microbench: ## the Go benchmarks: BENCH=regexp COUNT=6 BENCHTIME=1s OUT=bench.txt BASE=earlier.txt
	@GOMAXPROCS=1 go test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(COUNT) \
		-timeout 60m ./... | tee $(OUT)
	@go tool benchstat $(BASE) $(OUT)
